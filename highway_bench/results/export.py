"""Export a store to files that other programs read, and merge stores of several machines into one."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from highway_bench.errors import BadInput
from highway_bench.results.schema import COLUMNS, Row
from highway_bench.results.store import Store, Taken

JSON_COLUMNS = ("block_options", "family_options", "recipe", "samples")


def write_csv(rows: Iterable[Row], out: TextIO) -> None:
    """``rows`` as CSV with a header; nulls are empty, options, recipe and samples stay JSON text."""
    writer = csv.DictWriter(out, fieldnames=list(COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def write_jsonl(rows: Iterable[Row], out: TextIO) -> None:
    """``rows`` as JSON lines; options, recipe and samples become objects and lists."""
    for row in rows:
        out.write(json.dumps(parsed(row), ensure_ascii=False, allow_nan=False) + "\n")


def parsed(row: Row) -> Row:
    """``row``, or a part of its columns, with options, recipe and samples as objects and lists."""
    return row | {name: json.loads(row[name]) for name in JSON_COLUMNS if row.get(name) is not None}


WRITERS = {".csv": write_csv, ".jsonl": write_jsonl}


def export(store: Store, path: str | os.PathLike[str]) -> int:
    """Write all rows of ``store`` to ``path``, as ``.csv`` or ``.jsonl``, and return their number.

    Raises ``BadInput`` for another suffix or a path that cannot be written.
    """
    target = Path(path)
    if target.suffix not in WRITERS:
        raise BadInput(f"cannot export to {target}: its name must end in {' or '.join(WRITERS)}")
    rows = store.rows()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w", encoding="utf-8", newline="") as out:
            WRITERS[target.suffix](rows, out)
    except OSError as error:
        raise BadInput(f"cannot write {target}: {error.strerror}") from error
    return len(rows)


def merge(into: str | os.PathLike[str], *others: str | os.PathLike[str]) -> list[Taken]:
    """Add the cells and runs of the stores ``others`` to the store ``into``, and return what was taken of each.

    Of a cell that several stores have, the newest result is stored, and a failure never replaces it. ``into`` is
    created if it is missing; the others are only read. Raises ``BadInput``, before anything is written, for a store
    that is missing, damaged, or of a newer schema.
    """
    if not others:
        raise BadInput("nothing to merge: name at least one other store")
    if Path(into).resolve() in {Path(other).resolve() for other in others}:
        raise BadInput(f"{into} cannot be merged into itself")
    for other in others:
        Store(other, read_only=True).close()
    taken = []
    with Store(into) as target:
        for other in others:
            with Store(other, read_only=True) as source:
                taken.append(target.take(source))
    return taken
