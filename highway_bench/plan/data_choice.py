"""Data choice: on which data a user's layer trains, from its kind or from what the user names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from highway_bench.data import DataSet, cache_folder, datasets, make_dataset, read_own, read_text
from highway_bench.errors import BadInput, UnknownName, writing
from highway_bench.families import Family, reads_ahead
from highway_bench.families.seeding import all_seeded
from highway_bench.registry import imported, reference_of
from highway_bench.terminal import prints_to_stderr

DIGITS: Final = ("mnist-5k", {"pooled": 2})
"""Digits of 14 × 14 pixels: 5,000 that are part of an installed package."""

SEED: Final = 0  # of what a user's function draws


class DataChoice(NamedTuple):
    """A data set with its options, and why it was chosen where that needs saying."""

    name: str
    options: Mapping[str, Any]
    note: str = ""

    def but(self, options: Mapping[str, Any]) -> Self:
        """The choice with other ``options``; those that are not named stay."""
        return self._replace(options={**self.options, **options})

    def with_note(self, note: str) -> Self:
        """The choice with another ``note`` after its own."""
        return self._replace(note="; ".join(filter(None, (self.note, note))))

    @property
    def has_steps(self) -> bool:
        """Whether the data are here and their items are sequences."""
        return self.dataset.missing() is None and self.dataset.input_kind != "image"

    @property
    def dataset(self) -> DataSet:
        """The data set itself."""
        return make_dataset(self.name, **self.options)

    def __str__(self) -> str:
        options = ", ".join(f"{option} {value}" for option, value in self.options.items())
        return f"{self.name} ({options})" if options else self.name


def default_data(family: Family, width: int) -> DataChoice:
    """The data for a family: digits for vectors and images; a text for sequences.

    A sequence that reads no later step, by a perturbation test, gets ``language``, any other ``sentiment``. Where their
    files are missing, digits are read row by row.
    """
    if family.kind != "sequence":
        return DataChoice(*DIGITS)
    name = "sentiment" if reads_ahead(family, width) else "language"
    reason = make_dataset(name).missing()
    if reason is None:
        return DataChoice(name, {}, "" if name == "sentiment" else "the layer reads no later step")
    return DataChoice(*DIGITS, f"digits are read row by row, because {name} is not here: {reason}")


def named_data(given: Any, *, target: str | None = None, images: bool = False) -> DataChoice:
    """The data that ``given`` is or names.

    A name is that of a registered data set, a text file or a folder of texts for ``language``, or ``module:NAME`` (or
    ``FILE.py:NAME``) of data of the user's own. All else is such data themselves: see ``read_own``, for ``target`` and
    ``images`` too. Raises ``BadInput``, with near names.
    """
    if not isinstance(given, str):
        return own_data(given, getattr(given, "__name__", type(given).__name__), target, images)
    if given in datasets:
        return DataChoice(given, DIGITS[1] if given == DIGITS[0] else {})
    path = Path(given).expanduser().absolute()
    if os.path.exists(path):
        if path.is_dir() or (path.is_file() and not path.is_relative_to("/dev")):
            return DataChoice("language", {"path": str(path)})
        return DataChoice("language", {"path": str(saved_text(path))}, f"{path} is read once, and copied")
    if ":" in given:
        reference = reference_of(given)
        return own_data(imported(reference, "data"), reference, target, images)
    if os.sep in given or "." in given:
        raise BadInput(f"data {given!r}: there is no such file, and no data set of that name")
    raise UnknownName("data set", given, datasets)


def own_data(given: Any, name: str, target: str | None, images: bool) -> DataChoice:
    """The user's data ``given``, copied for the workers."""
    with all_seeded(SEED), prints_to_stderr():
        return DataChoice("batches", *read_own(given, name, target=target, images=images))


def saved_text(source: Path) -> Path:
    """A file with the text of ``source``, named by its contents; workers open it."""
    text = read_text(source).encode()
    path = cache_folder() / "items" / f"{hashlib.sha256(text).hexdigest()[:16]}.txt"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    return path


def check_choice(choice: DataChoice, batch_size: int) -> None:
    """Raise ``BadInput`` where the data of ``choice`` are missing, broken, or less than one batch."""
    reason = choice.dataset.missing()
    if reason is not None:
        raise BadInput(f"data {choice.name!r} cannot be used: {reason}")
    data = choice.dataset.load(seed=0)
    rows = len(data.train.inputs)
    if rows < batch_size:
        what = "the text is too short" if choice.name == "language" else "there are too few items"
        raise BadInput(f"data {choice}: {what}, {rows} rows of training data and a batch needs {batch_size}")
    if choice.dataset.chance_loss <= 0:
        raise BadInput(f"data {choice}: all targets are equal, so there is nothing to learn")
