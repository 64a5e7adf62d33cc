"""An entry as a folder: ``entry.toml`` (block, paper, author, machine, protocol), the block's file, its rows as
``rows.parquet``, and ``card.svg``, which follows from the rows."""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jinja2 import Template

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.plugins import PACKAGE, load_plugins
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report.format import between, signed, three
from highway_bench.results.parquet import ParquetRows, write_parquet
from highway_bench.results.store import Store
from highway_bench.studies.entries.columns import ColumnResult, results_of
from highway_bench.studies.entries.protocol import VERSION, EntryColumn

ABOUT, ROWS, CARD = "entry.toml", "rows.parquet", "card.svg"
FIELDS: Final = ("name", "file", "paper", "author", "machine", "commit", "protocol")
MOST: Final = 20
"""Per cent at the ends of a card's axis."""
HALF: Final = 84
"""Half of a card's axis."""


@dataclass(frozen=True)
class Entry:
    """The ``folder`` of an entry, and what its ``entry.toml`` says."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def block_file(self) -> str:
        """What registers the block: a file of the folder, or a module of this package."""
        file = str(self.about["file"])
        return str(self.folder / file) if file.endswith(".py") else file

    def load(self) -> None:
        """Register the block, unless it is registered."""
        if self.name not in blocks:
            load_plugins([self.block_file])

    def results(self, columns: Sequence[EntryColumn]) -> list[ColumnResult]:
        """The block in each column, from the rows of the folder."""
        rows = ParquetRows(self.folder / ROWS)
        return results_of(self.name, columns, Results(rows.frame(), rows.runs()))

    def card(self, columns: Sequence[EntryColumn]) -> str:
        """The text of the card that its rows give."""
        text = resources.files("highway_bench.studies.entries").joinpath("card.svg.j2").read_text("utf-8")
        card: str = Template(text, trim_blocks=True).render(
            name=self.name,
            equation=blocks.get(self.name).equation,
            paper=self.about["paper"],
            version=self.about["protocol"],
            most=MOST,
            columns=list(map(_drawn, self.results(columns))),
        )
        return card


def read_entry(folder: Path) -> Entry:
    """The entry in ``folder``. Raises ``BadInput`` where something of it is missing."""
    try:
        about = tomllib.loads((folder / ABOUT).read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{folder} is no entry: {error}") from None
    if lacking := [name for name in FIELDS if name not in about] + [
        name for name in (ROWS, CARD) if not (folder / name).is_file()
    ]:
        raise BadInput(f"{folder} is no entry: it has no {', '.join(lacking)}")
    return Entry(folder, about)


def write_entry(name: str, folder: Path, store: Store, columns: Sequence[EntryColumn], **about: str) -> Entry:
    """Write the entry of the block ``name`` from the rows of ``store``."""
    folder.mkdir(parents=True, exist_ok=True)
    module = blocks.module_of(name)
    source = Path(str(sys.modules[module].__file__))
    own, file = module.partition(".")[0] == PACKAGE, f"{name.replace('-', '_')}.py"
    if not own and source.resolve() != (folder / file).resolve():
        shutil.copyfile(source, folder / file)
    rows = [row for row in store.rows() if not row["axis"]]
    write_parquet(rows, {run: _brief(record) for run, record in store.runs().items()}, folder / ROWS)
    fields = {
        "name": name,
        "file": module if own else file,
        **about,
        "machine": identity("cpu").machine,
        "commit": source_commit() or f"highway-bench {version('highway-bench')}",
        "protocol": VERSION,
    }
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    (folder / ABOUT).write_text("\n".join([*lines, ""]), "utf-8")
    entry = Entry(folder, fields)
    (folder / CARD).write_text(entry.card(columns), "utf-8")
    return entry


def _brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run without what is of no use to others: paths and lists of digests."""
    return {key: value for key, value in record.items() if key not in ("digests", "store", "argv")}


def _drawn(one: ColumnResult) -> dict[str, Any]:
    """A column as the card draws it."""
    known = one.difference.n > 0
    bounds = (one.difference.low, one.difference.value, one.difference.high)
    left, dot, right = (HALF * (1 + min(max(value, -MOST), MOST) / MOST) if known else None for value in bounds)
    per_cent = (
        signed(round(one.difference.value, 1), "+.1f") + f" % {between(*bounds[::2], lambda x: signed(x, '+.1f'))}"
    )
    step = f"step × {three(one.step.value)} {between(one.step.low, one.step.high)}"
    return {
        "label": one.label,
        "left": None if left is None else round(left, 1),
        "dot": None if dot is None else round(dot, 1),
        "right": None if right is None else round(right, 1),
        "says": f"{one.word}, {one.trains}/{one.seeds} train" if one.seeds else one.word,
        "more": per_cent if known else "",
        "cost": step if one.seeds else "",
    }
