"""Finals: which connections may be the best, from the final losses of paired fresh seeds.

The best has the lowest mean. Every other is compared with it by a paired t test of log losses (of the losses
themselves, where a loss of the user's own is not positive), corrected by Holm. It is a leader unless it is worse, and
by more than 1 %. A connection that diverged at a seed is none.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final, Generic, TypeVar

import numpy as np
from scipy import stats

from highway_bench.measure.statistics import Array, holm, pairs_needed, t_interval

ALPHA: Final = 0.02
"""Of all comparisons with the best together. It is below the usual 0.05, because the best is chosen by the same losses,
and because a wrong "take" costs the user more than an "undecided"."""
POWER: Final = 0.8
EQUAL: Final = 0.01
"""Leaders whose interval of the relative difference lies within ± this are equal."""
MOST_SEEDS: Final = 100  # more are not named

Name = TypeVar("Name", bound=Hashable)


class QualityVerdict(StrEnum):
    """What the finals decide."""

    TAKE = "take"
    EQUAL = "equal"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True)
class Behind(Generic[Name]):
    """How far ``name`` is behind the best: the mean relative difference of losses with its interval at 1 − ``ALPHA``/m
    for m comparisons, Holm's ``p``, and the seeds that a difference of this size would need."""

    name: Name
    difference: float
    low: float
    high: float
    p: float
    needed: int | None

    @property
    def worse(self) -> bool:
        """Whether it is no leader."""
        return self.p < ALPHA and not self.equal

    @property
    def equal(self) -> bool:
        """Whether it is as good as the best, within 1 %."""
        return self.low >= -EQUAL and self.high <= EQUAL


@dataclass(frozen=True)
class JudgedFinals(Generic[Name]):
    """The verdict on finalists: the ``best``, the ``leaders`` (the best among them, in the order of their losses), each
    other's distance, and the number of ``seeds`` and of those that would be ``needed``."""

    verdict: QualityVerdict
    leaders: tuple[Name, ...]
    behind: tuple[Behind[Name], ...]
    seeds: int
    needed: int | None = None

    @property
    def best(self) -> Name | None:
        """The finalist of lowest mean loss; ``None`` where every one diverged."""
        return self.leaders[0] if self.leaders else None


def judged(losses: Mapping[Name, Sequence[float | None]]) -> JudgedFinals[Name]:
    """The verdict on the final ``losses`` of each finalist, one a seed in the order of seeds; ``None`` diverged."""
    seeds = max(map(len, losses.values()), default=0)
    whole = {name: [loss for loss in values if loss is not None] for name, values in losses.items()}
    sizes = on_scale({name: values for name, values in whole.items() if len(values) == seeds > 0})
    if not sizes:
        return JudgedFinals(QualityVerdict.NONE, (), (), seeds)
    best, *others = sorted(sizes, key=lambda name: float(sizes[name].mean()))
    differences = {name: sizes[name] - sizes[best] for name in others}
    adjusted = holm([p_value(one) for one in differences.values()])
    behind = tuple(distance(name, differences[name], p, len(others)) for name, p in zip(others, adjusted, strict=True))
    tied = [one for one in behind if not one.worse]
    verdict = QualityVerdict.UNDECIDED if tied else QualityVerdict.TAKE
    if tied and all(one.equal for one in tied):
        verdict = QualityVerdict.EQUAL
    needed = [one.needed for one in tied if not one.equal]
    most = None if None in needed or not needed else max(number for number in needed if number is not None)
    return JudgedFinals(
        verdict,
        (best, *(one.name for one in tied)),
        behind,
        seeds,
        most if verdict == QualityVerdict.UNDECIDED else None,
    )


def on_scale(losses: Mapping[Name, Sequence[float]]) -> dict[Name, Array]:
    """Losses on a scale on which differences are relative: logarithms, or shares of the mean size where a loss is not
    positive."""
    values = [loss for one in losses.values() for loss in one]
    if not values:
        return {}
    if min(values) > 0:
        return {name: np.log(np.asarray(one)) for name, one in losses.items()}
    unit = fmean(map(abs, values)) or 1.0
    return {name: np.asarray(one) / unit for name, one in losses.items()}


def p_value(differences: Array) -> float:
    """Two-sided p of a paired t test; 1 for a single pair."""
    n = len(differences)
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1)) if n > 1 else math.nan
    if n < 2:
        return 1.0
    if deviation <= 1e-12 * abs(mean) or deviation == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / deviation * math.sqrt(n), n - 1))


def distance(name: Name, differences: Array, p: float, comparisons: int) -> Behind[Name]:
    """The distance of ``name`` from the best."""
    estimate = t_interval(differences, 1 - ALPHA / comparisons)
    return Behind(name, estimate.value, estimate.low, estimate.high, p, seeds_needed(differences, comparisons))


def seeds_needed(differences: Array, comparisons: int) -> int | None:
    """Seeds with which a difference of this size would be seen with a probability of 80 %; ``None`` beyond 100.

    The normal approximation of Guenther (1981, doi:10.2307/2683371), and at least what a sign-flip test of so many
    comparisons needs.
    """
    if len(differences) < 2:
        return None
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    least = pairs_needed(comparisons, ALPHA)
    if mean == 0:
        return None
    level, power = float(stats.norm.isf(ALPHA / comparisons / 2)), float(stats.norm.ppf(POWER))
    number = max(least, math.ceil(((level + power) * deviation / mean) ** 2 + level**2 / 2))
    return number if number <= MOST_SEEDS else None
