"""Best learning rates by depth, and the slope of their logarithm against that of the depth."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from highway_bench.cell import canonical
from highway_bench.measure.statistics import CONFIDENCE, Array
from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import CONTEST, groups, of_task, recipe_of
from highway_bench.report.tables.cells import by_cell
from highway_bench.report.tables.trainability import METRICS, edge, one_contest_across_machines

SEARCH: Final = ("rate", "rates", "ladder", "together")
"""Words of a recipe in which a search's trials differ from the runs at the chosen rate."""
LEAST_DEPTHS: Final = 3

RATES: Final = (*CONTEST, "block", "depth", "rate", "k", "n", "edge", "spacing")
SLOPES: Final = (*CONTEST, "block", "slope", "slope_low", "slope_high", "intercept", "n", "edges")


class TriedRate(NamedTuple):
    """A learning rate: its runs, those that succeeded, and the mean of their log losses, infinite if one diverged."""

    rate: float
    n: int
    k: int
    size: float


def best_rates(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.best_rates``."""
    runs = by_cell(of_task(rows, "trainability"), METRICS)
    runs = runs[runs["rate"] > 0]
    runs = runs.assign(recipe=runs["recipe"].map(without_search))
    runs = one_contest_across_machines(runs, ("block", "depth", "seed", "trial", "rate"))
    records = []
    for setting, part in groups(runs, [*CONTEST, "block", "depth"]):
        tried = [_tried(float(str(rate)), own) for rate, own in part.groupby("rate")]
        if len(tried) > 1 and part["trial"].isna().any():  # without fresh runs, the search has not ended
            records.append(setting | _best(tried))
    return pd.DataFrame(records, columns=list(RATES))


def rate_slopes(best: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.rate_slopes``, from that of ``Results.best_rates``."""
    records = []
    for setting, part in groups(best[best["k"] > 0], [*CONTEST, "block"]):
        inside = part[part["edge"] == ""]
        record: dict[str, Any] = setting | {"n": len(inside), "edges": len(part) - len(inside)}
        if len(inside) >= LEAST_DEPTHS:
            record |= _slope(*(inside[name].to_numpy(dtype=float) for name in ("depth", "rate", "spacing")))
        records.append(record)
    return about.in_order(pd.DataFrame(records, columns=list(SLOPES)), (*CONTEST, "block"))


def without_search(recipe: object) -> str:
    """A recipe without the words that only choose its learning rate."""
    return canonical({name: value for name, value in recipe_of(recipe).items() if name not in SEARCH})


def _tried(rate: float, runs: pd.DataFrame) -> TriedRate:
    losses = runs["final_loss"].where(runs["final_loss"] >= 0, math.inf)
    with np.errstate(divide="ignore"):  # a loss of 0
        size = float(np.log(losses).mean())
    return TriedRate(rate, len(runs), int((runs["success"] == 1).sum()), size)


def _best(tried: list[TriedRate]) -> dict[str, Any]:
    """The rate with the most runs, which is the one that a search chose; among equals, that of the lowest losses."""
    tried = sorted(tried)
    at = min(range(len(tried)), key=lambda index: (-tried[index].n, tried[index].size, tried[index].rate))
    logs = np.log([one.rate for one in tried])
    spacing = float(np.diff(logs[max(0, at - 1) : at + 2]).max())
    best = tried[at]
    return {
        "rate": best.rate,
        "k": best.k,
        "n": best.n,
        "edge": edge(best.rate, [one.rate for one in tried]),
        "spacing": spacing,
    }


def _slope(depth: Array, rate: Array, spacing: Array) -> dict[str, float]:
    """The least-squares line of ln rate against ln depth, and the interval of its slope.

    The interval is Student's t from the residuals. The best of rates that are a factor apart is known up to that factor
    only, so the interval is at least that of an error which is uniform over it, with the variance (ln factor)² / 12.
    """
    x, y, n = np.log(depth), np.log(rate), len(depth)
    line = stats.linregress(x, y)
    residuals = y - (line.intercept + line.slope * x)
    share = (1 + CONFIDENCE) / 2
    of_residuals = float(stats.t.ppf(share, n - 2)) * math.sqrt(float(residuals @ residuals) / (n - 2))
    of_grid = float(stats.norm.ppf(share)) * math.sqrt(float(np.mean(spacing**2)) / 12)
    half = max(of_residuals, of_grid) / math.sqrt(float(((x - x.mean()) ** 2).sum()))
    slope, intercept = float(line.slope), float(line.intercept)
    return {"slope": slope, "slope_low": slope - half, "slope_high": slope + half, "intercept": intercept}
