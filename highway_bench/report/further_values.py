"""All results: the tables of the sections, then the values that have no column in them."""

from __future__ import annotations

from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, Shown
from highway_bench.report.results import Results
from highway_bench.report.rows import options_text
from highway_bench.report.sections.base import MOST, every_section, metric_column, section_of, status_columns
from highway_bench.report.tables.by_axis import POINTS
from highway_bench.report.tables.cells import by_cell


def all_results(results: Results) -> list[Shown]:
    """The tables of all sections without a heading of their own, then the values that have no column in them."""
    tables = [shown for section in every_section() if not section.heading for shown in section.tables(results)]
    for task in results.rows["task"].dropna().drop_duplicates():
        section = section_of(results, task)
        if section is None or not section.heading:
            tables += further_tables(results, task)
    return [shown for shown in tables if shown.entries]


def further_tables(results: Results, task: str) -> list[Shown]:
    """The values of a task by layer, step or epoch, then the scalars that have no column in its section."""
    return [*_by_axis(results, task), *_by_cell(results, task)]


def _title(results: Results, task: str) -> str:
    section = section_of(results, task)
    return section.title if section else task


def _by_axis(results: Results, task: str) -> list[Shown]:
    """One table per axis, layers first."""
    frame = results.of_task(task)
    units = dict(frame[["metric", "unit"]].drop_duplicates("metric").to_numpy())
    tables = []
    for axis, table in sorted(results.by_axis(task).items(), key=lambda item: item[0] != "layer"):
        metrics = [name for name in table.columns if name in units]
        recipes = list(dict.fromkeys(table["recipe"]))
        columns = [*_setting(), column.whole("index", axis)]
        columns += [metric_column(results, task, name, units[name]) for name in metrics]
        columns.append(column.whole("n", "networks"))
        note = f"Medians over networks, at up to {POINTS} points of the axis."
        if len(recipes) > 1:
            columns.append(column.computed("recipe", _recipe, is_number=False))
        elif options_text(recipes[0]):
            note += f" Recipe: {options_text(recipes[0])}."
        name = f"{task}-by-{axis}".replace(" ", "-")
        tables.append(column.shown(name, f"{_title(results, task)}, by {axis}", table, columns, note=note, most=MOST))
    return tables


def _by_cell(results: Results, task: str) -> list[Shown]:
    """One table with one row per cell; none if every scalar has a column elsewhere."""
    section = section_of(results, task)
    in_section = section.metrics if section else ()
    frame = results.of_task(task)
    frame = frame[(frame["axis"].fillna("") == "") & frame["trial"].isna()]
    further = frame[~frame["metric"].isin([*in_section, ""])]
    units = dict(further[["metric", "unit"]].dropna().drop_duplicates("metric").to_numpy())
    if not units:
        return []
    table = by_cell(frame, list(units))
    table = results.about.in_order(table, ("family_label", "dataset", "depth", "block", "seed"))
    columns = [
        *_setting(),
        column.whole("seed", "seed"),
        column.words("phase", "phase"),
        column.words("mode", "mode"),
        *(metric_column(results, task, name, unit) for name, unit in units.items()),
        column.whole("params", "parameters"),
        *status_columns(),
    ]
    title = f"{_title(results, task)}, {'further values' if in_section else 'one row per network'}"
    return [column.shown(f"{task}-cells", title, table, columns, most=MOST)]


def _setting() -> list[Column]:
    return [
        column.words("family_label", "family"),
        column.words("dataset", "data"),
        column.words("machine_label", "machine"),
        column.whole("depth", "depth"),
        column.words("block", "block"),
    ]


def _recipe(record: Record) -> str:
    return options_text(record["recipe"])
