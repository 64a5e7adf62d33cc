"""Finals: which connections may be the best, from the final losses of paired fresh seeds.

The best has the lowest mean. Every other is compared with it by a paired t test of log losses, corrected by Holm. It is
a leader unless it is worse, and by more than ``EQUAL``. A connection that diverged at a seed is none. If a loss of the
user's own is 0 or negative, all are compared without logarithms, as multiples of the best's mean size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Final, Generic

from highway_bench.measure.paired import Contrast, Name, contrasts, ranked

ALPHA: Final = 0.02
"""Of all comparisons with the best together. It is below the usual 0.05, because the best is chosen by the same losses,
and because a wrong "take" costs the user more than an "undecided"."""
EQUAL: Final = 0.01
"""Leaders whose interval of the relative difference lies within ± this are equal."""
MOST_SEEDS: Final = 100
"""More seeds than this are not named as the number that would decide."""
MOST: Final = 1000.0
"""Relative differences are cut here: two seeds that scatter widely give an interval that no number holds."""


class QualityVerdict(StrEnum):
    """What the finals decide."""

    TAKE = "take"
    EQUAL = "equal"
    UNDECIDED = "undecided"
    NONE = "none"


@dataclass(frozen=True)
class Behind(Generic[Name]):
    """How far ``name`` is behind the best: the mean relative difference of losses (0.12 is 12 % above the best) with
    its interval at 1 − ``ALPHA``/m for m comparisons, Holm's ``p``, and the seeds that such a difference would need."""

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
        """Whether it is as good as the best, within ± ``EQUAL``."""
        return self.low >= -EQUAL and self.high <= EQUAL

    @property
    def relation(self) -> str:
        """Its place next to the best, in a word."""
        return "behind" if self.worse else "equal" if self.equal else "tied"


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


def judged(losses: Mapping[Name, Sequence[float | None]], unfit: Collection[Name] = ()) -> JudgedFinals[Name]:
    """The verdict on the final ``losses`` of each finalist, one a seed in the order of seeds; ``None`` diverged.

    ``unfit`` are finalists that are none to use, whatever their losses: they are neither leaders nor behind. The others
    are corrected for as many comparisons as if these were compared too.
    """
    seeds = max(map(len, losses.values()), default=0)
    whole = {name: [loss for loss in values if loss is not None] for name, values in losses.items()}
    whole = {name: values for name, values in whole.items() if len(values) == seeds > 0}
    logs = all(loss > 0 for values in whole.values() for loss in values)
    sizes = {name: {n: math.log(one) if logs else one for n, one in enumerate(each)} for name, each in whole.items()}
    if not sizes:
        return JudgedFinals(QualityVerdict.NONE, (), (), seeds)
    best = ranked({name: values for name, values in sizes.items() if name not in unfit} or sizes)[0]
    if not logs:
        unit = fmean(map(abs, sizes[best].values())) or 1.0
        sizes = {name: {n: one / unit for n, one in by_seed.items()} for name, by_seed in sizes.items()}
    others = [name for name in ranked(sizes) if name != best]
    alpha = ALPHA / max(1, len(others))
    found = contrasts(sizes, best, 1 - alpha)
    behind = tuple(distance(name, found[name], alpha, logs) for name in others if name not in unfit)
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


def distance(name: Name, contrast: Contrast, alpha: float, logs: bool) -> Behind[Name]:
    """The distance of ``name`` from the best by a contrast of logarithms or of multiples; ``alpha`` is that of one
    comparison."""
    mean, needed = contrast.difference, contrast.pairs_needed(alpha)
    value, low, high = (cut(relative(one) if logs else one) for one in (mean.value, mean.low, mean.high))
    return Behind(name, value, low, high, contrast.p, int(needed) if needed <= MOST_SEEDS else None)


def relative(log: float) -> float:
    """The relative difference of two losses whose logarithms differ by ``log``."""
    return math.expm1(min(log, 700.0))  # above, it is no number


def cut(difference: float) -> float:
    """``difference``, within ± ``MOST``."""
    return math.copysign(MOST, difference) if abs(difference) > MOST else difference
