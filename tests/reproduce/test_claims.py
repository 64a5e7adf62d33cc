"""Claims: one rule for all verdicts, and the same claim behind rule, power and verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from highway_bench.studies.reproduce.claims import Claim, Observation, RuleVersion, Verdict
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, mean, order, prediction, rate


def claim(region: Region, *, statistic: Statistic = Statistic.MEAN, **rest: Any) -> Claim:
    return Claim(
        statement="it is so",
        source="§1",
        quantity="a number",
        statistic=statistic,
        region=region,
        observe=lambda quantities, _: Observation(decisive=quantities),
        **rest,
    )


def between(*bounds: float, n: int = 5) -> Quantity:
    return Quantity("q", sum(bounds) / 2, bounds[0], bounds[1], n)


def verdict(one: Claim, *quantities: Quantity) -> Verdict:
    return one.judge(quantities).verdict


@pytest.mark.parametrize(
    ("quantities", "expected"),
    [
        ([between(1.1, 2.0)], Verdict.REPRODUCED),
        ([between(1.1, 2.0), between(0.9, 2.0)], Verdict.UNDECIDED),
        ([between(1.1, 2.0), between(0.2, 0.9)], Verdict.CONTRADICTED),
        ([between(1.0, 1.0)], Verdict.UNDECIDED),
        ([between(math.nan, math.nan)], Verdict.NOT_TESTABLE),
        ([], Verdict.NOT_TESTABLE),
    ],
)
def test_the_verdict_follows_from_the_intervals(quantities: Sequence[Quantity], expected: Verdict) -> None:
    assert verdict(claim(Region(least=1.0)), *quantities) == expected


def test_a_claim_may_have_a_region_that_refutes_it() -> None:
    one = claim(Region(least=10), refuted=(Region(most=1),))
    assert verdict(one, between(2, 5)) == Verdict.UNDECIDED
    assert verdict(one, between(0.1, 0.9)) == Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (12, 16, Verdict.REPRODUCED),
        (11, 16, Verdict.UNDECIDED),  # a bare majority
        (8, 16, Verdict.UNDECIDED),  # half is not more than half
        (5, 16, Verdict.UNDECIDED),
        (4, 16, Verdict.CONTRADICTED),
        (3, 3, Verdict.UNDECIDED),
        (0, 0, Verdict.NOT_TESTABLE),
    ],
)
def test_a_rate_decides_by_its_interval(k: int, n: int, expected: Verdict) -> None:
    one = claim(Region(least=50), statistic=Statistic.RATE, unit="%", refuted=(Region(most=50),), n=16, effect=90)
    assert verdict(one, rate("", k, n)) == expected
    power = one.power()
    assert power is not None
    assert power.power == pytest.approx(0.983, abs=0.001)


def test_what_nothing_contradicts_is_not_testable_with_the_reason() -> None:
    finding = claim(Region(least=1), irrefutable="the budget is short").judge([between(0.1, 0.5)])
    assert finding.verdict == Verdict.NOT_TESTABLE
    assert finding.measured.endswith("(the budget is short)")


def test_an_observation_whose_guard_applies_has_no_verdict() -> None:
    guarded = replace(
        claim(Region(least=1)),
        observe=lambda quantities, _: Observation(decisive=quantities, untestable="the reference is untrained"),
    )
    assert verdict(guarded, between(2, 3)) == Verdict.NOT_TESTABLE


def test_a_rule_that_was_written_after_its_runs_is_suggestive_at_most() -> None:
    known = claim(Region(least=1), version=RuleVersion(known=True))
    quantities = between(2, 3), between(0.1, 0.5), between(0.5, 2)
    verdicts = [verdict(known, one) for one in quantities]
    assert verdicts == [Verdict.SUGGESTIVE, Verdict.SUGGESTIVE_AGAINST, Verdict.UNDECIDED]


@pytest.mark.parametrize(
    ("n", "comparisons", "expected"),
    [(3, 1, Verdict.SUGGESTIVE), (4, 1, Verdict.REPRODUCED), (5, 8, Verdict.SUGGESTIVE), (6, 8, Verdict.REPRODUCED)],
)
def test_an_order_that_chance_often_gives_is_suggestive(n: int, comparisons: int, expected: Verdict) -> None:
    """Three of three against three have p = 0.1, four 0.029, five 0.0079, six 0.0022."""
    one = claim(Region(least=1), statistic=Statistic.ORDER, unit="×", comparisons=comparisons)
    above = order("steps", [300.0 + seed for seed in range(n)], [100.0 + seed for seed in range(n)])
    assert verdict(one, above) == expected
    below = order("steps", [1.0] * n, [2.0] * n)
    against = {Verdict.SUGGESTIVE: Verdict.SUGGESTIVE_AGAINST, Verdict.REPRODUCED: Verdict.CONTRADICTED}
    assert verdict(one, below) == against[expected]


def test_the_order_of_runs_that_miss() -> None:
    assert order("", [math.inf, math.inf], [5.0, 9.0]).low == math.inf
    assert order("", [math.inf, 7.0], [5.0, 9.0]).low == pytest.approx(7 / 9)
    assert math.isnan(order("", [math.inf], [math.inf]).low)


def test_fewer_runs_than_the_rule_asks_for_decide_nothing() -> None:
    one = claim(Region(least=1), least=8, n=5, scatter=0.01, unit="×")
    finding = one.judge([between(2, 3, n=7)])
    assert (finding.verdict, finding.why) == (Verdict.NOT_TESTABLE, "7 of at least 8 runs")
    power = one.power()
    assert power is not None
    assert (power.power, power.needed) == (0.0, 8)


def test_what_a_request_lacks_has_no_power() -> None:
    one = claim(Region(least=1), n=5, scatter=0.01, unit="×", needs="a GPU")
    power = one.power()
    assert power is not None
    assert (power.n, power.power) == (0, 0.0)
    assert "a GPU" in one.power_text(power)


def test_an_observation_may_say_why_it_is_unlike_the_claim() -> None:
    unlike = replace(
        claim(Region(least=1)), observe=lambda quantities, _: Observation(decisive=quantities, unlike="too far")
    )
    assert verdict(unlike, between(2, 3)) == Verdict.UNDECIDED
    assert verdict(unlike, between(0.1, 0.5)) == Verdict.CONTRADICTED


def test_intervals() -> None:
    values = [0.1, 0.2, 0.4]
    ratio = mean("", values, 0.95, "×")
    assert (ratio.value, ratio.low * ratio.high) == (pytest.approx(0.2), pytest.approx(0.04))
    more = prediction("", [1.0, 2.0, 3.0], 0.95)
    assert more.high == pytest.approx(2 + 4.3027 * math.sqrt(1 + 1 / 3), rel=1e-4)
    assert math.isnan(mean("", [0.1, math.inf], 0.95, "×").low)
    assert math.isnan(prediction("", [0.1], 0.95, "×").low)


def test_the_rule_has_its_region_level_guard_and_date() -> None:
    version = RuleVersion(2, "2026-11-23", 3)
    one = claim(Region(1 / 1.5, 2), unit="points", comparisons=10, guard="without data", version=version)
    for fact in ("99.5 % t interval", "between 0.667 and 2 points", "without data", "2 of 2026-11-23", "from 3 on"):
        assert fact in one.rule


def test_the_power_is_that_of_the_same_rule() -> None:
    """With four contrasts, ten runs of 0.1 decades in each arm show a factor of 1.5."""
    one = claim(Region(least=1), statistic=Statistic.PAIRED, unit="×", n=10, scatter=0.1, comparisons=4)
    power = one.power()
    assert power is not None
    assert power.smallest == pytest.approx(1.5, abs=0.05)
    assert (power.effect, power.power, power.needed) == (2.0, pytest.approx(1.0, abs=0.01), 6)
    weak = replace(one, n=4, scatter=0.26)
    assert "; 20 runs would in 80 %" in weak.power_text(weak.power())
    finding = replace(one, scatter=math.nan).judge([mean("", [2.0, 2.2, 1.8], 0.9875, "×")])
    assert finding.power is not None
    assert claim(Region(0, 0, closed=True), statistic=Statistic.EXACT).power() is None
