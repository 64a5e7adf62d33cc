"""An entry as a folder: ``entry.toml``, the block's file, its rows, and a card.

``entry.toml`` says what was entered, by whom, where and under which protocol. The card follows from it and the rows.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from jinja2 import Template

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.frames.results import Results
from highway_bench.plugins import PACKAGE
from highway_bench.provenance import identity
from highway_bench.provenance.git import source_commit
from highway_bench.report.format import between, signed, three
from highway_bench.results.parquet import ParquetRows, write_parquet
from highway_bench.results.store import Store
from highway_bench.studies.entries.columns import ColumnResult, results_of
from highway_bench.studies.entries.protocol import EntryColumn, EntryWork, protocol_name

ABOUT, ROWS, CARD = "entry.toml", "rows.parquet", "card.svg"
FIELDS: Final = ("name", "file", "equation", "paper", "author", "machine", "commit", "protocol", "missing")
MOST: Final = 20
"""Per cent at the ends of a card's axis."""
HALF: Final = 84
"""Half of a card's axis."""


@dataclass(frozen=True)
class Entry:
    """The ``folder`` of an entry, and what its ``entry.toml`` says. Nothing of it runs the block's code."""

    folder: Path
    about: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.about["name"])

    @property
    def block_file(self) -> str:
        """What registers the block: a file of the folder, or a module of this package."""
        file = str(self.about["file"])
        return file if file.startswith(f"{PACKAGE}.") else str(self.folder / Path(file).name)

    def read(self) -> Results:
        """The rows."""
        rows = ParquetRows(self.folder / ROWS)
        return Results(rows.frame(), rows.runs())

    def results(self, columns: Sequence[EntryColumn]) -> list[ColumnResult]:
        """The block in each column, from the rows."""
        return results_of(self.name, columns, self.about["missing"], self.read())

    def card(self, columns: Sequence[EntryColumn]) -> str:
        """The text of the card."""
        text = resources.files("highway_bench.studies.entries").joinpath("card.svg.j2").read_text("utf-8")
        card: str = Template(text, trim_blocks=True).render(
            name=self.name,
            equation=self.about["equation"],
            about=" · ".join(filter(None, (self.about["author"], self.about["paper"]))),
            protocol=self.about["protocol"],
            most=MOST,
            columns=list(map(_drawn, self.results(columns))),
        )
        return card


def read_entry(folder: Path) -> Entry:
    """The entry in ``folder``. Raises ``BadInput`` where something of it is missing, or it has another name."""
    try:
        about = tomllib.loads((folder / ABOUT).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{folder} is no entry: {error}") from None
    lacking = [name for name in FIELDS if name not in about]
    lacking += [name for name in (ROWS, CARD) if not (folder / name).is_file()]
    if lacking:
        raise BadInput(f"{folder} is no entry: it has no {', '.join(lacking)}")
    if about["name"] != folder.name:
        raise BadInput(f"{folder} is the entry of {about['name']!r}, and should have its name")
    return Entry(folder, about)


def write_entry(
    work: EntryWork, folder: Path, store: Store, digests: Collection[str], *, paper: str, author: str
) -> Entry:
    """Write the entry of a block from the rows of these ``digests`` in ``store``. An entry that was there is replaced;
    it stays where this one cannot be written. Raises as ``results_of`` does."""
    name, module = work.block, blocks.module_of(work.block)
    source = Path(str(sys.modules[module].__file__))
    fields = {
        "name": name,
        "file": module if module.startswith(f"{PACKAGE}.") else source.name,
        "equation": blocks.get(name).equation,
        "paper": paper,
        "author": author,
        "machine": identity("cpu").machine,
        "commit": source_commit() or f"highway-bench {version('highway-bench')}",
        "protocol": protocol_name(work.columns),
    }
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if fields["file"] == source.name:
            shutil.copyfile(source, part / source.name)
        rows = [row for row in store.rows() if not row["axis"] and row["digest"] in digests]
        runs = {row["run_id"] for row in rows}
        records = {run: _public(record) for run, record in store.runs().items() if run in runs}
        write_parquet(rows, records, part / ROWS)
        lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
        lines += ["", "[missing]", *(f"{json.dumps(key)} = {json.dumps(why)}" for key, why in work.missing.items()), ""]
        (part / ABOUT).write_text("\n".join(lines), "utf-8")
        (part / CARD).write_text(Entry(part, fields | {"missing": work.missing}).card(work.columns), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return read_entry(folder)


def _public(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run without the paths of a machine."""
    return {key: value for key, value in record.items() if key not in ("command", "plugins", "digests")}


def _drawn(one: ColumnResult) -> dict[str, Any]:
    """A column as the card draws it."""
    known = one.difference.n > 0
    values = (one.difference.low, one.difference.value, one.difference.high)
    ends = [round(HALF * (1 + min(max(value, -MOST), MOST) / MOST), 1) if known else None for value in values]
    beyond = "▸" if one.difference.high > MOST else "◂" if one.difference.low < -MOST else ""
    return {
        "label": one.label,
        **dict(zip(("left", "dot", "right"), ends, strict=True)),
        "beyond": beyond,
        "says": f"{one.word}, {one.trains}/{one.seeds} train" if one.seeds else one.word,
        "more": f"{per_cent(one.difference.value, one.difference.low, one.difference.high)} %" if known else "",
        "cost": step_text(one),
    }


def step_text(one: ColumnResult) -> str:
    """The ratio of step times with its interval."""
    return f"step × {three(one.step)} {between(*one.step_bounds)}".strip() if one.seeds else ""


def per_cent(value: float, low: float, high: float) -> str:
    """A difference in per cent with its interval: −7.2 [−9.1, −5.3]."""
    return f"{signed(value, '+.1f')} {between(low, high, lambda one: signed(one, '+.1f'))}"
