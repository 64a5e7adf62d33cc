"""Tests of the differences in final loss between the blocks that train."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy import stats

from highway_bench.measure.statistics import holm, pairs_needed
from highway_bench.results.schema import Status

ALPHA: Final = 0.05
EXACT: Final = 20_000  # the test enumerates up to this many sign patterns, those of 14 seeds


@dataclass(frozen=True)
class Ranking:
    """The best block against the others.

    ``testable``: the seeds suffice for a significant difference. ``level``: blocks without one. ``p`` is the largest
    Holm-corrected p of the best.
    """

    testable: bool
    level: tuple[str, ...] = ()
    p: float = math.nan

    @property
    def ahead_of_all(self) -> bool:
        """Whether the best differs significantly from every other block."""
        return self.testable and not self.level


def ranking(single: pd.DataFrame, best: str, others: Sequence[str]) -> Ranking:
    """Compare the final losses of the runs ``single``, all of one depth, seed by seed.

    A sign-flip test for every pair of blocks uses the signed ranks of the differences in log10 of the loss; a diverged
    run ranks last. The Holm correction covers all pairs, because the best block was chosen by the same losses.
    """
    blocks = [best, *others]
    losses = {block: _losses(single[single["block"] == block]) for block in blocks}
    pairs = list(itertools.combinations(blocks, 2))
    common = {pair: losses[pair[0]].index.intersection(losses[pair[1]].index) for pair in pairs}
    if min(len(seeds) for seeds in common.values()) < pairs_needed(len(pairs), ALPHA):
        return Ranking(testable=False)
    raw = [_sign_flip(losses[a].loc[common[a, b]].to_numpy(), losses[b].loc[common[a, b]].to_numpy()) for a, b in pairs]
    adjusted = dict(zip(pairs, holm(raw), strict=True))
    own = {other: adjusted[best, other] for other in others}
    return Ranking(True, tuple(other for other, p in own.items() if p >= ALPHA), max(own.values()))


def _losses(runs: pd.DataFrame) -> pd.Series:
    """log10 of the final loss by seed, infinite where the run diverged."""
    logs = np.log10(runs["final_loss"].where(runs["final_loss"] > 0))
    losses: pd.Series = logs.mask(runs["status"] == Status.DIVERGED, math.inf).set_axis(runs["seed"]).dropna()
    return losses


def _sign_flip(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p of the paired test; two runs that both diverged are equal."""
    both = np.isinf(first) & np.isinf(second)
    difference = np.where(both, 0.0, np.where(both, 0.0, first) - np.where(both, 0.0, second))
    signed = np.sign(difference) * stats.rankdata(np.abs(difference))
    if not signed.any():
        return 1.0
    test = stats.permutation_test(
        (signed,), np.sum, permutation_type="samples", n_resamples=EXACT, vectorized=True, rng=np.random.default_rng(0)
    )
    return float(test.pvalue)
