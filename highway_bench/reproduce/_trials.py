"""What a search's trials say: the best of them, ratios of bests between arms, and the winner run again."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from highway_bench.frames.rows import groups, recipe_of
from highway_bench.measure.statistics import CONFIDENCE, log10_interval
from highway_bench.report.format import three
from highway_bench.reproduce.quantities import Quantity, best_reach, expected_best, left_out
from highway_bench.results.schema import OUTCOMES

COLUMNS = [
    "block",
    "depth",
    "trials",
    "best",
    "expected",
    "diverged",
    "median",
    "seeds",
    "won",
    "winner",
    "winner_low",
    "winner_high",
    "again",
    "steps",
    "params",
]

Trials = dict[tuple[str, int], NDArray[np.float64]]
"""(block, depth as the papers count) → final losses by trial; infinite where a trial diverged."""


def losses_by_trial(rows: pd.DataFrame) -> Trials:
    """The final losses of the trials in ``rows`` that ended, in the order of the trials, by block and depth."""
    rows = rows[rows["status"].isin(OUTCOMES)]  # a failed run has rows without a value too
    ended = rows[rows["trial"].notna() & (rows["metric"] == "final_loss") & (rows["axis"] == "")]
    return {
        (arm["block"], arm["depth"] + 1): part.sort_values("trial")["value"].fillna(math.inf).to_numpy(np.float64)
        for arm, part in groups(ended, ("block", "depth"))
    }


def table_of(rows: pd.DataFrame, trials: Trials) -> pd.DataFrame:
    """A row an arm and depth: the best trial, what it was, and the winner's losses on fresh seeds."""
    records, rows = [], rows[rows["status"].isin(OUTCOMES)]
    for (block, depth), losses in trials.items():
        here = rows[(rows["block"] == block) & (rows["depth"] == depth - 1) & (rows["axis"] == "")]
        again = here[here["trial"].isna()]
        fresh = again.loc[again["metric"] == "final_loss", "value"]
        winner = log10_interval(fresh) if len(fresh) and fresh.notna().all() else None
        best = here[here["trial"].notna() & (here["metric"] == "final_loss")].sort_values("value").iloc[0]
        records.append(
            {
                "block": block,
                "depth": depth,
                "trials": len(losses),
                "best": losses.min(),
                "expected": 10 ** float(expected_best(losses)),
                "diverged": int(np.isinf(losses).sum()),
                "median": float(np.median(losses)),
                "seeds": len(fresh),
                "won": _settings(best),
                "winner": winner.value if winner else math.inf if len(fresh) else math.nan,
                "winner_low": winner.low if winner else math.nan,
                "winner_high": winner.high if winner else math.nan,
                "again": sorted(fresh.dropna()),
                "steps": sorted(again.loc[again["metric"] == "steps_to_threshold", "value"].fillna(math.inf)),
                "params": here["params"].max(),
            }
        )
    return pd.DataFrame(records, columns=COLUMNS)


def _settings(trial: pd.Series[Any]) -> str:
    """The drawn values of a trial in few words."""
    recipe, gate = recipe_of(trial["recipe"]), recipe_of(trial["block_options"])
    activation = recipe_of(trial["family_options"]).get("activation", "relu")
    parts = [
        f"rate {three(recipe['rate'])}",
        f"momentum {three(recipe['momentum'])}",
        f"decay {three(recipe['decay'])}",
        activation,
    ]
    return ", ".join(parts + ([f"gate bias {three(gate['gate_bias'])}"] if "gate_bias" in gate else []))


def best_ratio(
    name: str, over: NDArray[np.float64], under: NDArray[np.float64], confidence: float = CONFIDENCE
) -> Quantity:
    """The expected best of ``BEST_OF`` trials, ``over`` / ``under``, with the interval of ``best_reach``; trials are
    pairs where there are as many.

    NaN if both expectations are infinite, and for searches with fewer trials. Without an interval if one of them is
    infinite, unless it is without any one trial too."""
    n = min(len(over), len(under))
    with np.errstate(invalid="ignore"):  # ∞ − ∞: both arms diverged
        value = float(expected_best(over) - expected_best(under))
    if math.isinf(value):
        surely = np.isinf(expected_best(left_out(over if value > 0 else under))).all()
        bound = 10**value if surely else math.nan
        return Quantity(name, 10**value, bound, bound, n, "×")
    half = best_reach(over, under, confidence)
    return Quantity(name, 10**value, 10 ** (value - half), 10 ** (value + half), n, "×")
