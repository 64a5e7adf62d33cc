"""Columns of a set that Hugging Face's ``datasets`` library loads: an optional extra, imported when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from highway_bench.errors import BadInput

INSTALL = "pip install highway-bench[text]"


def library_missing() -> str | None:
    """What to install, in one line; ``None`` where the library is installed."""
    return None if find_spec("datasets") else f"Hugging Face's library is missing: {INSTALL}"


def read_columns(
    dataset: str, path: str, config: str | None, split: str, columns: Sequence[str]
) -> tuple[list[Any], ...]:
    """The values of ``columns`` in one split of the set ``path``, the first column as texts.

    ``dataset`` is the name of our data set, for messages. Raises ``BadInput`` where the library, the set, the split or
    a column is missing, the split is empty, or the first column is not all text.
    """
    try:
        library = import_module("datasets")
    except ImportError as error:
        raise BadInput(f"data set {dataset!r} needs Hugging Face's library ({error}): {INSTALL}") from error
    try:
        table = library.load_dataset(path, config, split=split)
    except Exception as error:  # the library's and its network layer's errors have no base class in common
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{dataset} {path!r}, split {split!r}: {reason}") from error
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise BadInput(
            f"{dataset} {path!r} has no column {', '.join(map(repr, missing))}; its columns: "
            f"{', '.join(table.column_names)}"
        )
    if not len(table):
        raise BadInput(f"{dataset} {path!r}: split {split!r} is empty")
    values = tuple(list(table[name]) for name in columns)
    if not all(isinstance(text, str) for text in values[0]):
        raise BadInput(f"{dataset} {path!r}: column {columns[0]!r} of split {split!r} is not all text")
    return values
