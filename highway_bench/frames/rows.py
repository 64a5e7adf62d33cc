"""The rows that a report reads: the newest of each cell, with labels for blocks and families.

When the version of what a cell runs is raised, or the source of a user's layer changes, the cell gets another key, and
the store still has the rows of the old one. A report shows only the key that a run requested last, even if an edit was
undone. So no outdated number appears next to a new one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd

from highway_bench.cell import Cell, canonical
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.provenance.machine import labels
from highway_bench.results.schema import COLUMNS, OUTCOMES, Status
from highway_bench.success.rates import Fresh, counting

Runs = Mapping[str, Mapping[str, Any]]
"""The records of a store's runs, by run id."""

CELL: Final = (*(one.name for one in fields(Cell)), "machine")
"""Columns that identify a cell on a machine."""

COMPARISON: Final = (
    "machine",
    "device",
    "threads",
    "dtype",
    "mode",
    "phase",
    "match",
    "family_label",
    "depth",
    "nominal_width",
    "batch_size",
    "seq_len",
    "dataset",
)
"""Columns that are equal for cells whose step times or bytes are compared; these cells differ in their block."""

CONTEST: Final = (
    "family_label",
    "dataset",
    "recipe",
    "batch_size",
    "seq_len",
    "match",
    "nominal_width",
    "dtype",
    "device",
    "machine",
    "machine_label",
)
"""Columns equal within a set of trained networks that may be compared: they differ in block, start, depth and seed.

``machine_label`` follows from ``machine``: it is the part that is printed."""

TUNED: Final = "tuned"
"""The rate in a recipe whose learning rate was chosen for the block and depth."""

START: Final = "init"
"""The option of a family that chooses the start of its weights. It belongs to the label of the block: networks that
differ in their start alone are compared with each other."""
DEFAULT: Final = "default"
"""The start of a block of which no other start is named."""
STARTED: Final = " · "
"""Separates the start from the rest of a label."""


def prepared(rows: pd.DataFrame, runs: Runs | None = None) -> pd.DataFrame:
    """The newest of a store's ``rows`` for each cell, with columns ``label``, ``family_label`` and ``machine_label``.

    ``label`` is the block with its options, and with its start where the rows have several starts of it.
    ``machine_label`` is the machine, or empty if there is only one. If a cell has several digests, the one that
    ``runs`` requested last is used. In ``recipe``, a rate that was chosen for the cell is ``tuned``; ``as_run`` is the
    recipe with that rate. ``counts`` is false for runs at a rate that does not count (see ``success.rates``), which no
    table has, and ``other_rates`` are those at which the fresh seeds of the connection and depth ran too. A frame that
    is prepared already is returned unchanged.

    Raises ``NothingMeasured`` for a frame without rows and ``BadInput`` for a frame without the schema's columns.
    """
    if "label" in rows and "family_label" in rows:
        return rows
    missing = [name for name in COLUMNS if name not in rows]
    if missing:
        raise BadInput(f"not a results frame: no column {', '.join(missing[:3])}")
    if rows.empty:
        raise NothingMeasured("the store has no rows to report on")
    frame = newest(rows, runs or {}).copy()  # pandas 2 warns of a column set in a selection
    for name, (kind, _) in COLUMNS.items():
        if kind == "TEXT":
            text = frame[name].astype(object)
            frame[name] = text.where(text.notna(), None)
        else:
            numbers = pd.to_numeric(frame[name]).astype("float64")
            whole = kind == "INTEGER" and numbers.notna().all()
            frame[name] = numbers.astype("int64") if whole else numbers
    bytes_of_weights = frame["task"].eq("memory") & frame["metric"].eq("parameters")  # its name before 2026-11-29
    frame.loc[bytes_of_weights, "metric"] = "parameter_bytes"
    frame["as_run"] = frame["recipe"]
    frame["recipe"] = mapped(frame["recipe"], comparable)
    frame["counts"], frame["other_rates"] = _counting(frame, runs or {})
    others = mapped(frame["family_options"], without_init)
    frame["label"] = list(map(block_label, frame["block"], frame["block_options"], _named_starts(frame)))
    frame["family_label"] = list(map(block_label, frame["family"], others))
    machines = labels(frame["machine"].dropna())
    frame["machine_label"] = frame["machine"].map(machines).fillna("") if len(machines) > 1 else ""
    return frame


def mapped(column: pd.Series, function: Callable[[Any], object]) -> pd.Series:
    """``function`` of each value, called once for each different one, and with None for null."""
    codes, values = pd.factorize(column)  # the code of null is -1
    results = np.empty(len(values) + 1, dtype=object)
    results[:] = [*map(function, values), function(None)]
    return pd.Series(results[codes], index=column.index, dtype=object)


def comparable(recipe: object) -> object:
    """A value of the column ``recipe`` in which a rate that was chosen for the block and depth is ``tuned``, so that
    such runs are compared with each other."""
    words = recipe_of(recipe)
    if not words.pop("own_rate", False):
        return recipe
    return canonical({**words, "rate": TUNED})


def of_task(rows: pd.DataFrame, task: str) -> pd.DataFrame:
    """The prepared rows of one task that count."""
    frame = prepared(rows)
    wanted = (frame["task"] == task) & frame["counts"]
    return frame if wanted.all() else frame[wanted]


def scalar(frame: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The rows of one metric that has a single value per cell."""
    return frame[(frame["metric"] == metric) & (frame["axis"].fillna("") == "")]


def common_value(values: pd.Series) -> Any:
    """The value that all of ``values`` have, or ``None``."""
    known = values.dropna().unique()
    return known[0] if len(known) == 1 else None


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of ``frame`` as dictionaries by column."""
    names = list(map(str, frame.columns))
    return [dict(zip(names, row, strict=True)) for row in frame.to_numpy(dtype=object).tolist()]


def groups(frame: pd.DataFrame, columns: Iterable[str]) -> Iterable[tuple[dict[str, Any], pd.DataFrame]]:
    """The groups of rows of ``frame`` with equal ``columns``, each with the values of these columns by name.

    Nulls are equal to each other.
    """
    columns = list(columns)
    for values, part in frame.groupby(columns, dropna=False, sort=False):
        yield {name: plain(value) for name, value in zip(columns, values, strict=True)}, part


def recipe_of(text: object) -> dict[str, Any]:
    """A value of the column ``recipe`` as a dictionary, empty for null."""
    return dict(json.loads(text)) if isinstance(text, str) and text else {}


def samples_of(text: object) -> list[float]:
    """A value of the column ``samples`` as numbers in the order of measurement, empty for null.

    A null among the samples is NaN.
    """
    values = json.loads(text) if isinstance(text, str) and text else []
    return [math.nan if value is None else float(value) for value in values]


def options_text(text: object) -> str:
    """Options as text: ``gate_bias=-2, heads=4``, and ``causal`` for one that is true; empty if there are none."""
    return ", ".join(name if value is True else f"{name}={value}" for name, value in recipe_of(text).items())


@lru_cache(maxsize=10_000)
def block_label(name: str | None, options: object, start: str = DEFAULT) -> str:
    """A block or a family as tables and figures name it: its name, its options, and its start unless it is the default.

    ``options`` is a value of the column ``block_options``: ``highway gate_bias=-2``, ``residual · scaled-branch``.
    """
    label = f"{name or ''} {options_text(options)}".strip()
    return label if start == DEFAULT else f"{label}{STARTED}{start}"


def without_start(label: str) -> str:
    """The label of the same block with its default start, which has the same costs."""
    return label.partition(STARTED)[0]


def start_of(label: str) -> str:
    """The start in a block's label."""
    return label.partition(STARTED)[2] or DEFAULT


def plain(value: Any) -> Any:
    """A value of a frame as a plain Python value: None for missing ones, int for whole numbers."""
    if pd.isna(value):
        return None
    value = value.item() if hasattr(value, "item") else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def without_init(options: object) -> str:
    """A value of the column ``family_options`` without the start of the weights."""
    return json.dumps({name: value for name, value in recipe_of(options).items() if name != START})


def _named_starts(frame: pd.DataFrame) -> pd.Series:
    """The start in each row's label: the init that a family's options name, or the block's start where the rows have
    several of the block."""
    several = frame["start"].groupby([frame["block"], frame["block_options"]], dropna=False).transform("nunique") > 1
    starts = frame["start"].where(several & frame["start"].notna(), DEFAULT)
    inits = mapped(frame["family_options"], lambda options: recipe_of(options).get(START))
    return inits.where(inits.notna(), starts)


def newest(rows: pd.DataFrame, runs: Runs) -> pd.DataFrame:
    """The rows of the digest of each cell that a run measured or requested last."""
    results = rows.groupby(["digest", "machine"], dropna=False, sort=False, observed=True).ngroup()
    ordered = results.loc[_latest(rows, runs).sort_values(kind="stable").index]
    # A digest's rows are of one cell. Nulls compare unequal to themselves, so keys are text.
    cells = rows.loc[ordered.drop_duplicates(keep="last").index, list(CELL)]
    kept = results.loc[cells.index[~cells.astype("string").fillna("").duplicated(keep="last")]]
    return rows[rows["digest"].isna() | results.isin(kept)]


def _latest(rows: pd.DataFrame, runs: Runs) -> pd.Series:
    """When the digest of each row was measured or requested last."""
    requested: dict[str, str] = {}
    for run in runs.values():
        requested |= {
            digest: max(requested.get(digest, ""), str(run.get("started") or "")) for digest in run.get("digests") or ()
        }
    measured_at = rows["time_utc"].astype(object).fillna("").astype(str)
    requested_at = mapped(rows["digest"], lambda digest: requested.get(digest, ""))
    return measured_at.where(measured_at > requested_at, requested_at)


def _counting(frame: pd.DataFrame, runs: Runs) -> tuple[pd.Series, pd.Series]:
    """Whether each row's run is at the learning rate that counts, and at which others fresh seeds ran too, on whatever
    machine."""
    counts, others = pd.Series(True, frame.index), pd.Series([()] * len(frame), frame.index, dtype=object)
    own = frame[frame["as_run"].notna() & frame["as_run"].ne(frame["recipe"]) & frame["trial"].isna()]
    same = [name for name in CELL if name not in ("trial", "seed", "threads", "machine")]
    setting = own.groupby(same, dropna=False, sort=False).ngroup()
    several = own.groupby(setting)["as_run"].transform("nunique") > 1
    own, setting = own[several], setting[several]
    in_time = own.loc[_latest(own, runs).sort_values(kind="stable").index]
    ended = scalar(in_time, "success")
    ended = ended[ended["status"].isin(list(OUTCOMES))]  # runs that failed are no choice
    for number, part in ended.groupby(setting.loc[ended.index]):
        newest_last = part["as_run"].drop_duplicates(keep="last")
        runs_at = {as_run: part[part["as_run"] == as_run] for as_run in newest_last}
        found = {rate_of(at): fresh(one["value"], one["status"].eq(Status.DIVERGED)) for at, one in runs_at.items()}
        rate, rows = counting(found), own.index[setting == number]
        counts[rows] = mapped(own.loc[rows, "as_run"], rate_of) == rate
        others[rows] = pd.Series([tuple(other for other in found if other != rate)] * len(rows), rows)
    return counts, others


def rate_of(as_run: object) -> float:
    """The learning rate of a recipe that names one, else NaN."""
    return float(recipe_of(as_run).get("rate", math.nan))


def fresh(success: pd.Series, diverged: pd.Series) -> Fresh:
    """Runs with fresh seeds at one rate, from their successes (1) and whether each diverged."""
    return Fresh(int(success.eq(1).sum()), int(diverged.sum()), len(success))
