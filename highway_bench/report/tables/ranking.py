"""Whether the blocks that train can be ranked at all, and which the best is ahead of."""

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
EXACT: Final = 20_000  # sign patterns up to which the test looks at every one: 14 seeds


@dataclass(frozen=True)
class Ranking:
    """``testable``: there are seeds enough for a difference to show. ``level``: those the best is not ahead of."""

    testable: bool
    level: tuple[str, ...] = ()
    p: float = math.nan

    @property
    def ahead_of_all(self) -> bool:
        """Whether the best is ahead of every other block."""
        return self.testable and not self.level


def ranking(single: pd.DataFrame, best: str, others: Sequence[str]) -> Ranking:
    """Compare final losses of the runs ``single`` of one depth, seed by seed.

    Sign-flip tests on the signed ranks of differences in log10 of the loss, a diverged run ranking last, for every pair
    of these blocks (the best was picked by looking), Holm-corrected over the pairs. ``p`` is the largest of ``best``'s.
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
    found: pd.Series = logs.mask(runs["status"] == Status.DIVERGED, math.inf).set_axis(runs["seed"]).dropna()
    return found


def _sign_flip(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sided p of the paired test; two runs that both diverged are equal."""
    both = np.isinf(first) & np.isinf(second)
    difference = np.where(both, 0.0, np.where(both, 0.0, first) - np.where(both, 0.0, second))
    signed = np.sign(difference) * stats.rankdata(np.abs(difference))
    if not signed.any():
        return 1.0
    found = stats.permutation_test(
        (signed,), np.sum, permutation_type="samples", n_resamples=EXACT, vectorized=True, rng=np.random.default_rng(0)
    )
    return float(found.pvalue)
