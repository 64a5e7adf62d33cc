"""Paired comparisons: differences to a reference over common seeds, by Student's t, corrected by Holm."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import fmean
from typing import Final, NamedTuple, TypeVar

import numpy as np
import scipy  # a part of it is imported at its first use

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import CONFIDENCE, Array, IntervalEstimate, t_interval

ALPHA: Final = 0.05
POWER: Final = 0.8
LEAST_PAIRS: Final = 5
"""With fewer seeds in common there is no verdict on a difference."""
BETTER, WORSE, EQUAL, UNDECIDED = "better", "worse", "equal", "undecided"
"""What a comparison says; lower values are better. Equal: the interval lies within a stated distance of 0."""
UNKNOWN: Final = IntervalEstimate(math.nan, math.nan, math.nan, 0)

Name = TypeVar("Name", bound=Hashable)

BySeed = Mapping[int, float]
"""A finite value of each seed."""


class Contrast(NamedTuple):
    """The mean difference to the reference over paired seeds with its interval by Student's t, the standard
    ``deviation`` of the differences, and the ``word`` for it: better, worse, equal or undecided.

    ``p`` is that of the paired t-test, two-sided, corrected by Holm for all contrasts that were made together.
    """

    difference: IntervalEstimate
    deviation: float
    p: float
    word: str = UNDECIDED

    @property
    def is_significant(self) -> bool:
        """Whether the difference is not by chance: the corrected p is below 5 %."""
        return self.p < ALPHA

    def pairs_needed(self, alpha: float) -> float:
        """Pairs with which a difference of this size is significant at ``alpha`` with a probability of 80 %.

        The normal approximation of Guenther (1981, doi:10.2307/2683371). NaN where the differences do not vary, where
        they are 0 on average, or of a single pair.
        """
        if not self.deviation > 0 or self.difference.value == 0:
            return math.nan
        level, power = float(scipy.stats.norm.isf(alpha / 2)), float(scipy.stats.norm.ppf(POWER))
        return math.ceil(((level + power) * self.deviation / self.difference.value) ** 2 + level**2 / 2)


def compare(
    values: Mapping[Name, BySeed],
    reference: Name,
    alpha: float = ALPHA,
    equal_within: float = 0.0,
    confidence: float | None = None,
) -> dict[Name, Contrast]:
    """The contrast of every other entry of ``values`` with ``reference``, over the seeds that both have; lower values
    are better.

    An interval has the level at which Holm's procedure judges its contrast, so it excludes 0 where ``p`` is below
    ``alpha``; the word is by this interval. Where it lies within ± ``equal_within``, the difference is equal. One that
    is merely not separated from 0, or of fewer than ``LEAST_PAIRS`` seeds, is undecided. With ``confidence``, that of
    each interval alone, the contrasts have such intervals instead.

    Without a common seed a difference is NaN; with fewer than two, p is 1.
    """
    base = values[reference]
    differences = {
        name: np.array([by_seed[seed] - base[seed] for seed in sorted(by_seed.keys() & base.keys())])
        for name, by_seed in values.items()
        if name != reference
    }
    p_values = {name: p_value(one) for name, one in differences.items()}
    levels = holm_levels(p_values, alpha)
    found = {}
    for (name, one), p in zip(differences.items(), holm(list(p_values.values())), strict=True):
        judged = _mean(one, 1 - levels[name])
        shown = judged if confidence is None else _mean(one, confidence)
        deviation = float(one.std(ddof=1)) if len(one) > 1 else math.nan
        found[name] = Contrast(shown, deviation, p, _word(judged, equal_within))
    return found


def contrasts(values: Mapping[Name, BySeed], reference: Name, confidence: float = CONFIDENCE) -> dict[Name, Contrast]:
    """``compare`` with intervals each of which alone has this ``confidence``."""
    return compare(values, reference, confidence=confidence)


def _mean(differences: Array, confidence: float) -> IntervalEstimate:
    return t_interval(differences, confidence) if len(differences) else UNKNOWN


def _word(difference: IntervalEstimate, equal_within: float) -> str:
    if difference.n < LEAST_PAIRS:
        return UNDECIDED
    if -equal_within <= difference.low and difference.high <= equal_within:
        return EQUAL
    return BETTER if difference.high < 0 else WORSE if difference.low > 0 else UNDECIDED


def holm_levels(p_values: Mapping[Name, float], alpha: float = ALPHA) -> dict[Name, float]:
    """The level at which Holm's procedure judges each p: α/m, α/(m − 1), … from the smallest p of m on, and no larger
    one after the first that is not significant."""
    levels: dict[Name, float] = {}
    level, goes_on = alpha / max(1, len(p_values)), True
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        level = alpha / (len(p_values) - rank) if goes_on else level
        goes_on = goes_on and p_values[name] < level
        levels[name] = level
    return levels


def ranked(values: Mapping[Name, BySeed]) -> list[Name]:
    """The entries in the order of their means."""
    return sorted(values, key=lambda name: fmean(values[name].values()))


def leaders(values: Mapping[Name, BySeed]) -> list[Name]:
    """The entries that are not worse than the one of the lowest mean, which is the first of them."""
    best = ranked(values)[0]
    return [best, *(name for name, one in contrasts(values, best).items() if not one.is_significant)]


def p_value(differences: Array) -> float:
    """Two-sided p of a paired t-test, which is 1 for fewer than two pairs. Equal differences give 0, or 1 where they
    are 0."""
    if len(differences) < 2:
        return 1.0
    mean = float(differences.mean())
    if float(differences.std()) <= 1e-12 * abs(mean):  # here scipy's value is rounding, and a warning
        return float(mean == 0)
    return float(scipy.stats.ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values (Holm 1979), in the order given."""
    if not all(0 <= p <= 1 for p in p_values):
        raise BadInput(f"p-values lie between 0 and 1, not {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
