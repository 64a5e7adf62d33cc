"""Contrasts: candidates against a reference on the same seeds, corrected for their number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from scipy import stats

from highway_bench.measure.statistics import IntervalEstimate, holm, t_interval

ALPHA = 0.05

BySeed = Mapping[int, float]
"""A finite value of each seed."""


class Contrast(NamedTuple):
    """The mean difference to the reference over paired seeds, with its 95 % interval by Student's t.

    ``p`` is that of the paired t-test, two-sided, corrected by Holm for all contrasts that were planned together.
    """

    difference: IntervalEstimate
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is not by chance: the corrected p is below 5 %."""
        return self.p < ALPHA


def contrasts(values: Mapping[str, BySeed], reference: str) -> dict[str, Contrast]:
    """The contrast of every other entry of ``values`` with the one called ``reference``, over the seeds that both have.

    Raises ``BadInput`` for a pair without two common seeds.
    """
    base, differences = values[reference], {}
    for name, by_seed in values.items():
        if name != reference:
            differences[name] = [by_seed[seed] - base[seed] for seed in sorted(by_seed.keys() & base.keys())]
    raw = [float(stats.ttest_1samp(one, 0.0).pvalue) if any(one) else 1.0 for one in differences.values()]
    return {name: Contrast(t_interval(one), p) for (name, one), p in zip(differences.items(), holm(raw), strict=True)}


def leaders(values: Mapping[str, BySeed]) -> list[str]:
    """The entries that are not worse than the one of the lowest mean, which is the first of them."""
    ranked = sorted(values, key=lambda name: sum(values[name].values()) / len(values[name]))
    return ranked[:1] + [name for name, one in contrasts(values, ranked[0]).items() if not one.is_significant]
