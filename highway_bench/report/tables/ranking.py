"""The block of lowest final loss at one depth, and its margins over the others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.measure.paired import ALPHA, BySeed, Contrast, contrasts, holm_levels, ranked
from highway_bench.results.schema import Status


@dataclass(frozen=True)
class Margin:
    """The best block's final loss over that of ``block``: the geometric mean of the ``ratio`` over ``seeds`` pairs.

    The interval is Student's t of the logarithms at the level at which Holm's procedure judges this comparison: it is
    below 1 where the corrected p is below 5 %. NaN with a single pair. ``needed`` is the number of pairs with
    which a ratio of this size would be significant with a probability of 80 %, NaN if that cannot be estimated.
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
    """The block of lowest mean loss over the seeds that all have, ``best``, and its margins over the others, in the
    order of their losses."""

    best: str
    margins: tuple[Margin, ...]

    @property
    def tied(self) -> tuple[str, ...]:
        """The blocks that the best one is not ahead of."""
        return tuple(margin.block for margin in self.margins if not margin.decided)


def lead(runs: pd.DataFrame, blocks: Sequence[str]) -> Lead:
    """Compare the final losses of ``blocks`` in ``runs``, all of one contest and depth, seed by seed.

    A diverged run counts with the largest finite loss among these runs, a loss of 0 with the smallest one above. The
    comparisons are corrected by Holm, as those
    of an advice and of the planned contrasts are, so that the same runs give the same verdict everywhere.
    """
    losses = _losses(runs[runs["block"].isin(blocks)])
    values = _by_seed(losses)
    common = losses.dropna()
    best, *others = ranked(values if common.empty else _by_seed(common))
    levels = holm_levels({block: _behind(values, best, block, ALPHA).p for block in others})
    judged = {block: _behind(values, best, block, level) for block, level in levels.items()}
    return Lead(best, tuple(_margin(block, judged[block], levels[block]) for block in others))


def _behind(values: Mapping[str, BySeed], best: str, block: str, alpha: float) -> Contrast:
    """The contrast of one block with the best one, by itself, with the interval at ``alpha``."""
    return contrasts({best: values[best], block: values[block]}, best, 1 - alpha)[block]


def _losses(runs: pd.DataFrame) -> pd.DataFrame:
    """Natural logarithm of the final loss: one row per seed, one column per block."""
    positive = runs["final_loss"].where(runs["final_loss"] > 0)
    least = positive.min() if positive.notna().any() else 1.0  # where all are 0, all are equal
    logs = np.log(positive.mask(runs["final_loss"].eq(0), least))
    logs = logs.mask(runs["status"].eq(Status.DIVERGED), logs.max())
    once = runs.assign(log=logs).drop_duplicates(["block", "seed"], keep="last")
    table: pd.DataFrame = once.pivot_table(index="seed", columns="block", values="log")
    return table


def _by_seed(losses: pd.DataFrame) -> dict[str, dict[Any, float]]:
    return {str(block): own.dropna().to_dict() for block, own in losses.items()}


def _margin(block: str, behind: Contrast, alpha: float) -> Margin:
    mean = behind.difference
    ratio, low, high = (math.exp(-bound) for bound in (mean.value, mean.high, mean.low))
    return Margin(block, ratio, low, high, mean.n, behind.pairs_needed(alpha))
