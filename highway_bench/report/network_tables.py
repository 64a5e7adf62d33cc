"""Tables of what lies inside networks as they are printed: trained gates and lesions, exact counts, values by layer."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Entry, Record, Shown
from highway_bench.report.format import NONE, quantity
from highway_bench.report.rows import CONTEST, groups, in_order, of_task, options_text, prepared
from highway_bench.report.tables import counts_table, gates_table
from highway_bench.report.tables.along import POINTS, along
from highway_bench.report.tables.cells import by_cell
from highway_bench.report.tables.labels import contest_name, contest_text

MOST: Final = 1_000  # rows of a table on the page; a store may have tens of thousands

NAMES: Final = {
    "throughput": "Step times",
    "memory": "Memory",
    "trainability": "Trainability",
    "propagation": "The start",
    "gates": "Trained networks",
    "cost": "Counts",
}
"""What the tasks' tables are called; a plug-in's task has its own name."""

SHARES: Final = frozenset(
    {
        "intact_error",
        "lesion_error",
        "gate_activity",
        "gates_shut",
        "gates_full",
        "gates_open_one",
        "gates_open_average",
        "gates_open_some",
        "gate_saturation",
        "train_accuracy",
        "test_accuracy",
        "epoch_test_accuracy",
        "budget_mismatch",
    }
)
"""Metrics of unit 1 that are read as percentages."""

HEADINGS: Final = {
    "intact_loss": ("training loss", "after training, over the whole training set"),
    "intact_error": ("training error", "after training, over the whole training set"),
    "gate_bias_start": ("gate bias, start", "mean over units"),
    "gate_bias_end": ("gate bias, end", "mean over units"),
    "gate_activity": ("mean T", "of the transform gate over items and units"),
    "gates_shut": ("gates shut", "units whose mean T over items is below 0.05"),
    "gates_full": ("shortcuts closed", "units and items with T > 0.95, where C = 1 − T < 0.05"),
    "gates_open_one": ("open for one", "units with T > 0.5 for one item, the mean over items"),
    "gates_open_average": ("open on average", "units whose mean T over items is above 0.5"),
    "gates_open_some": ("open for some", "units with T > 0.5 for an item in a hundred or more"),
    "gate_class_spread": ("class spread", "standard deviation of T's class means, the mean over units"),
    "sparsity_one": ("sparsity for one", "Hoyer's, of all gates for one item: 0 where equal, 1 where one is on"),
    "sparsity_average": ("sparsity on average", "Hoyer's, of the gates' means over items"),
    "stream_change": ("‖Δx‖ / ‖x‖", "how much a layer changes what it is given"),
    "lesion_loss": ("loss without it", "training loss with this layer cut out"),
    "lesion_error": ("error without it", "training error with this layer cut out"),
    "budget_mismatch": ("parameters off", "what rounding of widths leaves"),
    "update": ("‖ΔW‖ / ‖W‖", "of the first steps of training"),
    "together": ("trained together", "networks that were trained as one"),
}
"""How metrics are headed, and what they are; others by their own name."""


def gate_columns(metrics: tuple[str, ...]) -> list[Column]:
    """Columns of these metrics under their headings."""
    return [_column(metric, "nat" if metric.endswith("_loss") else "1") for metric in metrics]


def gate_tables(rows: pd.DataFrame) -> list[Shown]:
    """What the gates task saw, in brief: a table a contest, with a row a block and depth."""
    frame = prepared(rows)
    brief = (
        "intact_loss",
        "intact_error",
        "gate_bias_start",
        "gate_bias_end",
        "gate_activity",
        "gates_shut",
        "gates_open_one",
        "gates_open_average",
        "gates_open_some",
        "gates_full",
        "gate_class_spread",
        "sparsity_one",
        "sparsity_average",
        "stream_change",
    )
    columns = [
        column.whole("depth", "depth"),
        column.words("block", "block"),
        column.made("seeds that train", lambda record: Entry(f"{record['k']} of {record['n']}", record["k"])),
        *gate_columns(brief),
        column.made("costliest layer", _costliest, "the layer whose loss rises most where it is cut out, and by what"),
    ]
    found: list[Shown] = []
    for contest, part in groups(gates_table(frame), CONTEST):
        note = f"{contest_text(contest)}. Means over all networks, those by layer over layers too."
        title = f"{contest_name(contest)}: trained networks from inside"
        found.append(column.shown(f"inside-{len(found) + 1}", title, part, columns, note=note))
    return found


def count_tables(rows: pd.DataFrame) -> list[Shown]:
    """Parameters and multiply-adds, a row a network."""
    table = counts_table(prepared(rows))
    columns = [
        column.words("family_label", "family"),
        column.words("dataset", "data"),
        column.whole("depth", "depth"),
        column.words("block", "block"),
        column.whole("parameters", "parameters"),
        column.whole("multiply_adds", "multiply-adds", "of one item forward"),
        column.exact_ratio("adds_ratio", "÷ plain's", "multiply-adds over plain's"),
        column.whole("width", "width"),
        column.whole("seq_len", "length"),
        column.words("match", "equal"),
        column.words("status", "status"),
        column.words("message", "remark"),
    ]
    note = "Exact counts: no interval. Biases, norms and non-linearities are in no multiply-add."
    shown = column.shown("counts", "Parameters and multiply-adds", table, columns, note=note, most=MOST)
    return [shown] if shown.entries else []


def further_tables(rows: pd.DataFrame, task: str, without: tuple[str, ...] = ()) -> list[Shown]:
    """What a task stored by layer, step or epoch, then its scalars but those ``without``, a row a cell."""
    return [*along_tables(rows, task), *cell_tables(rows, task, without)]


def along_tables(rows: pd.DataFrame, task: str) -> list[Shown]:
    """What a task stored by layer, step or epoch: a table an axis."""
    frame = prepared(rows)
    units = dict(frame.loc[frame["task"] == task, ["metric", "unit"]].drop_duplicates("metric").to_numpy())
    found = []
    tables = along(frame, task)
    for axis, table in sorted(tables.items(), key=lambda item: item[0] != "layer"):
        metrics = [name for name in table.columns if name in units]
        recipes = list(dict.fromkeys(table["recipe"]))
        columns = [*_setting(), column.whole("index", axis), *(_column(name, units[name]) for name in metrics)]
        columns.append(column.whole("n", "networks"))
        note = f"Medians over networks, at up to {POINTS} points of the axis."
        if len(recipes) > 1:
            columns.append(column.made("recipe", _recipe, is_number=False))
        elif options_text(recipes[0]):
            note += f" Recipe: {options_text(recipes[0])}."
        title = f"{NAMES.get(task, task)}, by {axis}"
        name = f"{task}-by-{axis}".replace(" ", "-")
        found.append(column.shown(name, title, table, columns, note=note, most=MOST))
    return found


def cell_tables(rows: pd.DataFrame, task: str, without: tuple[str, ...] = ()) -> list[Shown]:
    """Every scalar that a task stored but those ``without``, a row a cell; none where nothing is left."""
    frame = of_task(prepared(rows), task)
    frame = frame[(frame["axis"].fillna("") == "") & frame["trial"].isna()]
    about = frame.loc[~frame["metric"].isin([*without, ""]), ["metric", "unit"]].dropna().drop_duplicates("metric")
    units = dict(about.to_numpy())
    if not units:
        return []
    table = by_cell(frame, list(units))
    table = in_order(table, ("family_label", "dataset", "depth", "block", "seed"))
    columns = [
        *_setting(),
        column.whole("seed", "seed"),
        column.words("phase", "phase"),
        column.words("mode", "mode"),
        *(_column(name, unit) for name, unit in units.items()),
        column.whole("params", "parameters"),
        column.words("status", "status"),
        column.words("message", "remark"),
    ]
    title = f"{NAMES.get(task, task)}, a row a network" if not without else f"{NAMES.get(task, task)}, further values"
    return [column.shown(f"{task}-cells", title, table, columns, most=MOST)]


def _setting() -> list[Column]:
    return [
        column.words("family_label", "family"),
        column.words("dataset", "data"),
        column.words("machine_label", "machine"),
        column.whole("depth", "depth"),
        column.words("block", "block"),
    ]


def _column(metric: str, unit: str) -> Column:
    heading, hint = HEADINGS.get(metric, (metric.replace("_", " "), ""))
    if metric in SHARES:
        return column.percent(metric, heading, hint)
    return column.number(metric, heading, unit, hint)


def _recipe(record: Record) -> Entry:
    text = options_text(record["recipe"])
    return Entry(text, text)


def _costliest(record: Record) -> Entry:
    most = record["lesion_most"]
    if column.missing(most):
        return Entry(NONE, math.inf)
    return Entry(f"{record['lesion_at']:.0f}: {quantity(most, 'nat')}", float(most))
