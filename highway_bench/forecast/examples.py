"""Examples: one row per training run, with what was known of it before its end, and whether it succeeded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from highway_bench.blocks import blocks
from highway_bench.report.rows import CONTEST, groups, of_task, prepared
from highway_bench.report.tables.propagation import starts
from highway_bench.report.tables.rates import best_rates, without_search
from highway_bench.results.schema import OUTCOMES

FIRST_STEPS: Final = 50
LARGEST: Final = 20.0  # decades: more is the same to a forecast, and a size of 0 or ∞ has no logarithm
SCALES: Final = 6  # times ξ: about the depth to which a signal reaches (arXiv:1611.01232)


@dataclass(frozen=True)
class Feature:
    """A number that is known before a training ends. ``falls``: the forecast never rises with it."""

    name: str
    about: str
    falls: bool = False


FEATURES: Final = (
    Feature("log_depth", "ln depth", falls=True),
    Feature("gradient_decades", "|log₁₀| of the gradient's ratio, first to last layer"),
    Feature("jacobian_decades", "|log₁₀| of ‖J‖²/d, the Jacobian of the stack"),
    Feature("gradient_correlation", "shattering: cosine of neighbouring gradients"),
    Feature("depth_scales", f"depth ÷ {SCALES}ξ, 0 where nothing decays", falls=True),
    Feature("stream_change", "‖x′ − x‖ / ‖x‖ of a layer at the start"),
    Feature("loss_fall", f"fall of ln loss in {FIRST_STEPS} steps"),
)
NAMES: Final = tuple(feature.name for feature in FEATURES)
EXAMPLE: Final = ("digest", "connection", "family", *NAMES, "success")
KEY: Final = ("block", "family_label", "depth", "width")
"""What a training shares with the cell of ``propagation`` that measured its start; ``block`` includes the start."""

CHOICE: Final = (*CONTEST, "block", "depth")
"""What is equal for runs of which one learning rate was chosen."""

AT_START: Final = ("gradient_ratio", "jacobian_gain", "gradient_correlation", "depth_scale", "stream_change")


def examples(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per training run at the best rate of its depth: ``digest``, ``connection``, ``family``, ``NAMES``,
    ``success``.

    Where no other rate was tried, its rate counts as the best. A feature that was not measured is NaN. Runs whose start
    was not measured at all are left out. ``connection`` is shared by the variants of a block.
    """
    rows = prepared(rows)
    runs, measured = at_best_rates(finished(rows), best_rates(rows)), measured_starts(rows)
    if runs.empty or measured.empty:
        return pd.DataFrame(columns=list(EXAMPLE))
    runs = runs.merge(measured, on=list(KEY)).join(loss_falls(rows), on="digest")
    return runs.assign(
        connection=runs["name"].map(connection),
        log_depth=np.log(runs["depth"].astype(float)),
        gradient_decades=decades(runs["gradient_ratio"]),
        jacobian_decades=decades(runs["jacobian_gain"]),
        depth_scales=(runs["depth"] / (SCALES * runs["depth_scale"])).fillna(0.0),
    )[list(EXAMPLE)].reset_index(drop=True)


def finished(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per training run that ended, without the trials of a search."""
    frame = of_task(rows, "trainability")
    frame = frame[frame["trial"].isna() & (frame["axis"].fillna("") == "")]
    about = frame.drop_duplicates("digest")[["digest", *CONTEST, "block", "family", "label", "depth", "width"]]
    values = frame.pivot_table(index="digest", columns="metric", values="value").reindex(columns=["success", "rate"])
    runs = about.rename(columns={"block": "name", "label": "block"}).join(values, on="digest")
    return runs[runs["success"].notna()].assign(recipe=runs["recipe"].map(without_search))


def at_best_rates(runs: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """The ``runs`` at the ``best`` rate of their depth, or at any rate where none was chosen."""
    chosen = {tuple(key.values()): part["rate"].iloc[0] for key, part in groups(best, CHOICE)}
    chosen_runs = [
        part[part["rate"] == chosen.get(tuple(key.values()), part["rate"])] for key, part in groups(runs, CHOICE)
    ]
    return pd.concat(chosen_runs) if chosen_runs else runs


def measured_starts(rows: pd.DataFrame) -> pd.DataFrame:
    """The medians over seeds of what was measured of each start with unscaled weights, by ``KEY``."""
    table = starts(rows)
    table = table[(table["gain"] == 1) & table["status"].isin(OUTCOMES)]
    return table.groupby(list(KEY), as_index=False)[list(AT_START)].median()


def loss_falls(rows: pd.DataFrame) -> pd.Series:
    """By digest, ``loss_fall`` of each training run with a curve."""
    frame = of_task(rows, "trainability")
    curves = frame[(frame["metric"] == "loss") & (frame["axis"] == "step")].sort_values("index")
    falls = {
        digest: loss_fall(part["index"].to_list(), part["value"].to_list()) for digest, part in curves.groupby("digest")
    }
    return pd.Series(falls, name="loss_fall", dtype="float64")


def loss_fall(steps: Sequence[float], losses: Sequence[float]) -> float:
    """ln of the first loss of a curve over its loss at step ``FIRST_STEPS``, between whose points it is interpolated.

    A curve that ends before, of a run that diverged, counts up to its end. NaN without a positive loss.
    """
    known = [(step, math.log(loss)) for step, loss in zip(steps, losses, strict=True) if loss > 0]
    if not known:
        return math.nan
    at, logs = zip(*known, strict=True)
    return float(logs[0] - np.interp(FIRST_STEPS, at, logs))


def decades(ratios: pd.Series) -> pd.Series:
    """|log₁₀| of measured ratios, at most ``LARGEST``, which is also that of a ratio that is not finite."""
    with np.errstate(divide="ignore"):
        return pd.Series(np.log10(ratios.astype(float))).abs().clip(upper=LARGEST).fillna(LARGEST)


def connection(block: str) -> str:
    """The name that a block and its variants share."""
    return blocks.get(block).cls.__name__ if block in blocks else block
