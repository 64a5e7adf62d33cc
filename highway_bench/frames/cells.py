"""From tidy rows, one metric per row, to one row per cell; ratios to the baseline's; and cells without a result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import pandas as pd

from highway_bench.frames.rows import CELL, groups
from highway_bench.results.schema import FAILURES, LATER_ATTEMPT, Status, worst

COPIED = ("run_id", "commit", "time_utc", "torch", "gpu")
NO_SPREAD: Final[Mapping[str, str]] = {}
FAILURE = ["task", "family_label", "block", "depth", "phase", "dataset", "status", "message"]
HAS_RESULT = "after the reported result"


def by_cell(
    frame: pd.DataFrame, metrics: Sequence[str], *, spread: Mapping[str, str] = NO_SPREAD, further: Sequence[str] = ()
) -> pd.DataFrame:
    """One row per cell of ``frame``, with one column per metric, NaN if it was not measured: ``metrics``, present in
    ``frame`` or not, then its other scalars.

    ``block`` and ``family_label`` are names with their options. ``status`` is the worst status of the cell's rows, by
    the store's rule; ``message`` joins the remarks of these rows, each once. ``spread`` maps metrics to the stem of the
    columns ``…_low`` and ``…_high`` for their percentiles; the first of these metrics also gives ``samples``,
    ``paired`` and ``n``. ``further`` columns of ``frame`` are copied.
    """
    scalars = frame[frame["axis"].fillna("") == ""]
    trial = scalars["digest"].where(scalars["trial"].notna())  # the recipes of trials at all rates are equal
    cell = scalars.assign(trial_digest=trial).groupby([*CELL, "trial_digest"], dropna=False, sort=False).ngroup()
    scalars = scalars.assign(cell=cell)
    copied = [*CELL, "label", "family_label", "machine_label", *COPIED, *further]
    table = scalars.drop_duplicates("cell").set_index("cell")[copied]
    rows_of_cells = scalars.groupby("cell")
    table["params"] = rows_of_cells["params"].max()
    table["status"] = [str(worst(statuses.unique())) for _, statuses in rows_of_cells["status"]]
    remarks = scalars[scalars["message"].fillna("") != ""].groupby("cell")["message"]
    joined = {number: "; ".join(dict.fromkeys("; ".join(texts).split("; "))) for number, texts in remarks}
    table["message"] = pd.Series([joined.get(number, "") for number in table.index], table.index, dtype=str)
    others = [name for name in scalars["metric"].dropna().unique() if name not in ("", *table)]
    newest = scalars.drop_duplicates(["cell", "metric"], keep="last").set_index("cell")
    values = newest.pivot_table(index="cell", columns="metric", values="value", aggfunc="last")
    table = table.join(values.reindex(columns=list(dict.fromkeys([*metrics, *others]))))
    for metric, name in spread.items():
        table = table.join(newest.loc[newest["metric"] == metric, ["low", "high"]].add_prefix(f"{name}_"))
    for metric in list(spread)[:1]:
        table = table.join(newest.loc[newest["metric"] == metric, ["samples", "paired", "n"]])
    return table.reset_index(drop=True).infer_objects().drop(columns="block").rename(columns={"label": "block"})


def over_baseline(table: pd.DataFrame, column: str, alike: Sequence[str], baseline: str) -> pd.Series:
    """``column`` of each row divided by that of the block ``baseline`` with equal columns ``alike``.

    NaN if the baseline has no such row or none above 0. If it has several, the last one counts.
    """
    ratios = pd.Series(math.nan, index=table.index)
    for _, part in groups(table, alike):
        reference = part.loc[part["block"] == baseline, column].dropna()
        if len(reference) and reference.iloc[-1] > 0:
            ratios.loc[part.index] = part[column] / reference.iloc[-1]
    return ratios


def failures_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.failures``."""
    bad = rows[rows["status"].isin([*FAILURES, Status.SKIPPED])]
    later = bad["axis"].eq(LATER_ATTEMPT)
    remarks = bad["message"].fillna("")
    bad = bad.assign(axis=bad["axis"].mask(later, ""), message=remarks.mask(later, remarks + f" ({HAS_RESULT})"))
    table = by_cell(bad, ())
    table["message"] = table["message"].fillna("")
    counted = table.groupby(FAILURE, dropna=False, sort=False).size().reset_index(name="cells")
    order = [*sorted(FAILURES), str(Status.SKIPPED)]
    return counted.sort_values(
        ["status", "task"],
        key=lambda column: column.map(order.index) if column.name == "status" else column,
        kind="stable",
        ignore_index=True,
    )
