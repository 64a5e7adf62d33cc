"""Verdicts on given losses: take, equal, undecided, none; paired t tests, corrected by Holm."""

import numpy as np
import pytest

from highway_bench.studies.advice.finals import MOST, QualityVerdict, judged

SEEDS = 7
BASE = np.exp(np.random.default_rng(0).normal(0, 0.3, SEEDS))  # what the seeds share
NOISE = np.random.default_rng(1).normal(0, 0.02, (3, SEEDS))


def losses(**factors):
    return {
        name: list(BASE * factor * np.exp(noise)) for (name, factor), noise in zip(factors.items(), NOISE, strict=False)
    }


def test_one_leader():
    verdict = judged(losses(b=1.3, a=1.0, c=1.5))
    assert (verdict.verdict, verdict.leaders, verdict.needed) == (QualityVerdict.TAKE, ("a",), None)
    assert [(one.name, one.relation) for one in verdict.behind] == [("b", "behind"), ("c", "behind")]
    gap = verdict.behind[0].difference
    assert gap.low < gap.value < gap.high
    assert gap.value == pytest.approx(0.3, abs=0.04)


def test_seeds_that_it_would_need():
    noise = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0]) * 0.05
    verdict = judged({"a": list(BASE), "b": list(BASE * np.exp(0.04 + noise))})
    assert verdict.verdict == QualityVerdict.UNDECIDED
    assert SEEDS < (verdict.needed or 0) < 30


def test_equal_leaders():
    verdict = judged({"a": list(BASE), "b": list(BASE * np.exp(NOISE[0] / 100)), "c": list(BASE * 2)})
    assert verdict.verdict == QualityVerdict.EQUAL
    assert set(verdict.leaders) == {"a", "b"}


def test_losses_that_are_not_positive_are_compared_as_multiples_of_the_best():
    verdict = judged({"a": [-3.0, -3.1, -2.9, -3.0], "b": [1.0, 1.1, 0.9, 1.0]})
    assert verdict.leaders == ("a",)
    assert verdict.behind[0].difference.value == pytest.approx(4 / 3)  # 4 above the best, whose mean size is 3
    near_0 = judged({"a": [0.0, 1e-9], "b": [1.0, 1.1]})
    assert near_0.behind[0].difference.value == MOST
