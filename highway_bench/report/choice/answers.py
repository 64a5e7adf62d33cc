"""The wide table of the committed rows and of a store: one row for each connection, whatever was measured where.

The committed part travels with the package: ``python -m docs.pages`` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.frames.results import Results, Source, open_results
from highway_bench.frames.rows import DEFAULT, block_label, rows_of
from highway_bench.measure.paired import BETTER, WORSE, BySeed, compare
from highway_bench.report.choice.columns import AGREES, BITS, COLUMNS, CONTRADICTS, EQUAL_BITS, HERE, WideRow, typed
from highway_bench.report.choice.costs import Costs
from highway_bench.report.choice.table import LOG_EQUAL, add_differences, finals_of, wide_table
from highway_bench.report.format import counted
from highway_bench.results.parquet import FINALS, FOLDER, PLAIN, TABLE, known
from highway_bench.success.ladder import NOT_RUN

COLUMN: Final = ("kind", "data", "depth", "protocol")
"""What is equal within a column of the overview."""
COMPARED: Final = tuple(
    name
    for name in COLUMNS
    if name.endswith(("_difference", "_behind", "_ratio", "_word", "_place")) and name != "step_ratio"
)
"""Columns of comparisons with other connections."""


def known_answers() -> pd.DataFrame:
    """The wide table of the committed rows."""
    return typed(rows_of(pd.read_parquet(FOLDER / TABLE)))


def known_finals() -> pd.DataFrame:
    """The final trainings of the committed rows, as ``table.finals_of`` has them."""
    return pd.read_parquet(FOLDER / FINALS)


def plain_texts() -> dict[str, dict[str, str]]:
    """The files of plain torch by connection and start, as ``highway_bench.export`` writes them."""
    texts: dict[str, dict[str, str]] = {}
    for row in known(PLAIN):
        texts.setdefault(row["connection"], {})[row["start"]] = row["text"]
    return texts


def joined(known: pd.DataFrame, known_finals: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The wide table ``known`` with the rows of ``results``.

    What was trained under an equal protocol is compared with the committed seeds, and a new connection with all
    others. Costs are those of this store in the columns that it timed.
    """
    own_finals = finals_of(results)
    finals = pd.concat([known_finals, own_finals], ignore_index=True)
    costs = Costs(results)
    here = _by_column(rows_of(wide_table(results)))
    records = []
    for column, rows in _by_column(rows_of(known)).items():
        own = {_name(row): row for row in here.pop(column, [])}
        names = {_name(row) for row in rows}
        if repeated := {name: row for name, row in own.items() if name in names and row["seeds"]}:
            _mark(rows, repeated, _part(known_finals, column), _part(own_finals, column))
        if new := [own[name] for name in own if name not in names]:
            rows += new
            _compare_again(rows, _part(finals, column))
        records += rows + list(_costs_here(costs, column, rows))
    records += [row for rows in here.values() for row in rows]
    return typed(records)


def this_machine(table: pd.DataFrame) -> str:
    """What a store adds to the committed rows, in a line; empty if that is nothing."""
    timed = table[table["costs"].eq(HERE) & table["step_ratio"].notna()]
    numbers = (counted(timed[name].nunique(), name) for name in ("connection", "kind"))
    parts = [" timed in ".join(numbers)]
    parts = parts if len(timed) else []
    repeated = table[table["repeated"].notna()]
    said = repeated["repeated"].eq(AGREES).groupby([repeated[name] for name in COLUMN]).all()
    if len(said):
        agree = int(said.sum())
        parts.append(f"{agree} of {counted(len(said), 'repeated column')} {'agrees' if agree == 1 else 'agree'}")
    return f"This machine: {'; '.join(parts)}" if parts else ""


def _by_column(rows: Sequence[WideRow]) -> dict[tuple[Any, ...], list[WideRow]]:
    found: dict[tuple[Any, ...], list[WideRow]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in COLUMN), []).append(row)
    return found


def _part(finals: pd.DataFrame, column: tuple[Any, ...]) -> pd.DataFrame:
    return finals[(finals[list(COLUMN)] == list(column)).all(axis=1)]


def _name(row: Mapping[str, Any]) -> str:
    """The label of a connection at its start."""
    return block_label(row["connection"], None, row["start"])


def _by_seed(finals: pd.DataFrame, value: str) -> Mapping[str, BySeed]:
    """The finite values of a column by label and seed."""
    found: dict[str, dict[int, float]] = {}
    for row in rows_of(finals[finals[value].notna()]):
        if math.isfinite(row[value]):
            found.setdefault(_name(row), {})[row["seed"]] = row[value]
    return found


def _logs(values: Mapping[str, BySeed]) -> Mapping[str, BySeed]:
    positive = {name: {seed: one for seed, one in by.items() if one > 0} for name, by in values.items()}
    return {name: {seed: math.log(one) for seed, one in by.items()} for name, by in positive.items()}


def _mark(rows: Sequence[WideRow], repeated: Mapping[str, WideRow], known: pd.DataFrame, here: pd.DataFrame) -> None:
    """Say of each of ``rows`` that was ``repeated`` whether that agrees: by the differences of held-out loss over equal
    seeds, corrected by Holm for the column, and by the shares of seeds that train."""
    in_bits = rows[0]["data"] in BITS
    before, again = (
        values if in_bits else _logs(values) for values in (_by_seed(part, "held_out") for part in (known, here))
    )
    differences: dict[str | None, BySeed] = {
        name: {seed: value - before[name][seed] for seed, value in again[name].items() if seed in before[name]}
        for name in repeated
        if name in before and name in again
    }
    zero = {seed: 0.0 for by_seed in differences.values() for seed in by_seed}
    found = compare({None: zero, **differences}, None, equal_within=EQUAL_BITS if in_bits else LOG_EQUAL)
    for row in rows:
        name = _name(row)
        if name in repeated and row["seeds"]:
            (low, high), (least, most) = (
                (one["trains_share_low"], one["trains_share_high"]) for one in (row, repeated[name])
            )
            differs = name in found and found[name].word in (BETTER, WORSE)
            row["repeated"] = CONTRADICTS if differs or least > high or most < low else AGREES


def _compare_again(rows: Sequence[WideRow], finals: pd.DataFrame) -> None:
    """Compare all connections of a column that has one that was trained here alone."""
    for row in rows:
        row |= dict.fromkeys(COMPARED) | {"label": _name(row)}
    add_differences(
        rows,
        _by_seed(finals, "held_out"),
        _logs(_by_seed(finals, "loss")),
        in_bits=rows[0]["data"] in BITS,
    )


def _costs_here(costs: Costs, column: tuple[Any, ...], rows: list[WideRow]) -> Iterator[WideRow]:
    """Replace the costs of a column by those that were measured here, and give a row of costs alone for each further
    connection."""
    setting: WideRow = dict(zip(COLUMN, column, strict=True))
    setting |= {name: rows[0][name] for name in ("plain_width", "batch")}
    contest = {
        "family_label": setting["kind"],
        "match": setting["protocol"].removeprefix("equal ").partition(",")[0],
        "nominal_width": setting["plain_width"],
        "batch_size": setting["batch"],
    }
    for row in rows:
        row["label"] = _name(row)
    alone = {"start": DEFAULT, "outcome": NOT_RUN, "seeds": 0, "trains": 0, "source": HERE, "costs": HERE}
    further = [setting | alone | {"connection": name, "label": name} for name in costs.replace(rows, contest)]
    costs.add_to(further, contest)
    yield from further


def answers(store: Source | Results | None = None) -> pd.DataFrame:
    """How well each connection trains, and its cost: a row for each kind of layer, data set, depth and start.

    The committed rows (``source`` is ``known``) and, with ``store``, a path or rows, those that it has (``here``). What
    it repeats under an equal protocol is no row of its own: ``repeated`` says whether it agrees. ``costs`` are this
    machine's in the columns that it timed.

    ``highway_bench.report.choice.columns.COLUMNS`` explains the columns, ``attrs["units"]`` has the units, and
    columns ``…_low`` and ``…_high`` bound the column of that name. Connections are compared where they train, at equal
    ``kind``, ``data``, ``protocol`` and ``depth``, seed by seed; the intervals of differences are corrected by Holm.

    Raises ``NothingMeasured`` for a store without rows and ``BadInput`` for one that cannot be read.

    >>> import highway_bench as hb
    >>> table = hb.answers()
    >>> table.loc[table["outcome"].eq("trains"), "kind"].nunique() > 4
    True
    """
    known = known_answers()
    if store is None:
        return known
    return joined(known, known_finals(), store if isinstance(store, Results) else open_results(store))
