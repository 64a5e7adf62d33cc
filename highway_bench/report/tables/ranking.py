"""The block of lowest final loss at one depth, and its margins over the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from highway_bench.measure.statistics import t_interval
from highway_bench.results.schema import Status

ALPHA: Final = 0.05
POWER: Final = 0.8


@dataclass(frozen=True)
class Margin:
    """The best block's final loss over that of ``block``: the geometric mean of the ``ratio`` over ``seeds`` pairs.

    The interval is Student's t of the logarithms at 1 − 0.05/m for m comparisons with the best block, so that all m
    hold together with 95 % (Bonferroni). NaN with a single pair. ``needed`` is the number of pairs with which a
    ratio of this size would be significant with a probability of 80 %, NaN if that cannot be estimated.
    """

    block: str
    ratio: float
    low: float
    high: float
    seeds: int
    needed: float

    @property
    def decided(self) -> bool:
        """Whether the best block is ahead: the interval lies below 1."""
        return self.high < 1


@dataclass(frozen=True)
class Lead:
    """The block of lowest mean loss, ``best``, and its margins over the others, in the order of their losses."""

    best: str
    margins: tuple[Margin, ...]

    @property
    def tied(self) -> tuple[str, ...]:
        """The blocks that the best one is not ahead of. With ``best`` they hold the true best block with 95 %."""
        return tuple(margin.block for margin in self.margins if not margin.decided)


def lead(runs: pd.DataFrame, blocks: Sequence[str]) -> Lead:
    """Compare the final losses of ``blocks`` in ``runs``, all of one contest and depth, seed by seed.

    A diverged run counts with the largest finite loss among these runs. The best block is chosen by the same losses;
    the interval allows for that, because it covers every comparison of the true best block with another.
    """
    losses = _losses(runs[runs["block"].isin(blocks)])
    best, *others = (str(block) for block in losses.mean().sort_values(kind="stable").index)
    return Lead(best, tuple(_margin(losses[best], losses[other], len(others)) for other in others))


def _losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Natural logarithm of the final loss: one row per seed, one column per block."""
    logs = np.log(runs["final_loss"].where(runs["final_loss"] > 0))
    logs = logs.mask(runs["status"].eq(Status.DIVERGED), logs.max())
    once = runs.assign(log=logs).drop_duplicates(["block", "seed"], keep="last")
    table: pd.DataFrame = once.pivot_table(index="seed", columns="block", values="log")
    return table


def _margin(best: pd.Series, other: pd.Series, comparisons: int) -> Margin:
    differences = (best - other).dropna()
    if differences.empty:
        return Margin(str(other.name), math.nan, math.nan, math.nan, 0, math.nan)
    interval = t_interval(differences, 1 - ALPHA / comparisons)
    ratio, low, high = (math.exp(bound) for bound in (interval.value, interval.low, interval.high))
    return Margin(str(other.name), ratio, low, high, interval.n, _needed(differences, comparisons))


def _needed(differences: pd.Series, comparisons: int) -> float:
    """Pairs for a paired t test of this mean and standard deviation (Guenther 1981, doi:10.2307/2683371)."""
    mean, deviation = float(differences.mean()), float(differences.std())
    if not mean or not deviation > 0:
        return math.nan
    level, power = float(stats.norm.isf(ALPHA / comparisons / 2)), float(stats.norm.ppf(POWER))
    return math.ceil(((level + power) * deviation / mean) ** 2 + level**2 / 2)
