"""Claims: one rule for all verdicts, and the same claim behind rule, power and verdict."""

import math
from dataclasses import replace

import pytest

from highway_bench.studies.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, mean, order, prediction, rate
from tests.reproduce.conftest import A, C, N, R, S, U


def claim(region, *, statistic=Statistic.MEAN, seen=None, **rest):
    """A claim on quantities; ``seen`` are further fields of their observation."""
    return Claim(
        statement="it is so",
        source="§1",
        quantity="a number",
        statistic=statistic,
        region=region,
        observe=lambda quantities, _: Observation(decisive=quantities, **(seen or {})),
        **rest,
    )


def between(low, high, n=5):
    return Quantity("q", (low + high) / 2, low, high, n)


ABOVE = Region(least=1.0)
KNOWN = {"version": RuleVersion(known=True)}
REFUTED = {"region": Region(least=10), "refuted": (Region(most=1),)}


@pytest.mark.parametrize(
    ("rule", "quantities", "expected"),
    [
        ({}, [between(1.1, 2.0)], R),
        ({}, [between(1.1, 2.0), between(0.9, 2.0)], U),
        ({}, [between(1.1, 2.0), between(0.2, 0.9)], C),
        ({}, [between(1.0, 1.0)], U),
        ({}, [between(math.nan, math.nan)], N),
        ({}, [], N),
        (REFUTED, [between(2, 5)], U),
        (REFUTED, [between(0.1, 0.9)], C),
        ({"irrefutable": "the budget is short"}, [between(0.1, 0.5)], N),
        ({"seen": {"untestable": "the reference is untrained"}}, [between(2, 3)], N),
        ({"seen": {"unlike": "too far"}}, [between(2, 3)], U),
        ({"seen": {"unlike": "too far"}}, [between(0.1, 0.5)], C),
        (KNOWN, [between(2, 3)], S),  # a rule that was written after its runs
        (KNOWN, [between(0.1, 0.5)], A),
        (KNOWN, [between(0.5, 2)], U),
        ({"least": 8}, [between(2, 3, n=7)], N),
    ],
)
def test_the_verdict_follows_from_the_intervals_and_the_rule(rule, quantities, expected):
    finding = claim(**{"region": ABOVE, **rule}).judge(quantities)
    assert finding.verdict == expected
    reasons = [rule[name] for name in ("irrefutable",) if name in rule] + list(rule.get("seen", {}).values())
    assert finding.why in reasons or not reasons or expected == C


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [
        (12, 16, R),
        (11, 16, U),  # a bare majority
        (8, 16, U),  # half is not more than half
        (5, 16, U),
        (4, 16, C),
        (3, 3, U),
        (0, 0, N),
    ],
)
def test_a_rate_decides_by_its_interval(k, n, expected):
    one = claim(Region(least=50), statistic=Statistic.RATE, unit="%", refuted=(Region(most=50),), n=16, effect=90)
    assert one.judge([rate("", k, n)]).verdict == expected
    assert one.power().power == pytest.approx(0.983, abs=0.001)


@pytest.mark.parametrize(("n", "comparisons", "suggestive"), [(3, 1, True), (4, 1, False), (5, 8, True), (6, 8, False)])
def test_an_order_that_chance_often_gives_is_suggestive(n, comparisons, suggestive):
    """Three of three against three have p = 0.1, four 0.029, five 0.0079, six 0.0022."""
    one = claim(ABOVE, statistic=Statistic.ORDER, unit="×", comparisons=comparisons)
    above = order("steps", [300.0 + seed for seed in range(n)], [100.0 + seed for seed in range(n)])
    below = order("steps", [1.0] * n, [2.0] * n)
    assert [one.judge([each]).verdict for each in (above, below)] == ([S, A] if suggestive else [R, C])


def test_the_order_of_runs_that_miss():
    assert order("", [math.inf, math.inf], [5.0, 9.0]).low == math.inf
    assert order("", [math.inf, 7.0], [5.0, 9.0]).low == pytest.approx(7 / 9)
    assert math.isnan(order("", [math.inf], [math.inf]).low)


def test_intervals():
    values = [0.1, 0.2, 0.4]
    ratio = mean("", values, 0.95, "×")
    assert (ratio.value, ratio.low * ratio.high) == (pytest.approx(0.2), pytest.approx(0.04))
    more = prediction("", [1.0, 2.0, 3.0], 0.95)
    assert more.high == pytest.approx(2 + 4.3027 * math.sqrt(1 + 1 / 3), rel=1e-4)
    assert math.isnan(mean("", [0.1, math.inf], 0.95, "×").low)
    assert math.isnan(prediction("", [0.1], 0.95, "×").low)


def test_the_rule_has_its_region_level_guard_and_date():
    version = RuleVersion(2, "2026-11-23", 3)
    one = claim(Region(1 / 1.5, 2), unit="points", comparisons=10, guard="without data", version=version)
    for fact in ("99.5 %", "0.667 and 2", "without data", "2 of 2026-11-23", "from 3"):
        assert fact in one.rule


def test_the_power_is_that_of_the_same_rule():
    """With four contrasts, ten runs of 0.1 decades in each arm show a factor of 1.5."""
    one = claim(ABOVE, statistic=Statistic.PAIRED, unit="×", n=10, scatter=0.1, comparisons=4)
    power = one.power()
    assert power.smallest == pytest.approx(1.5, abs=0.05)
    assert (power.effect, power.power, power.needed) == (2.0, pytest.approx(1.0, abs=0.01), 6)
    assert replace(one, n=4, scatter=0.26).power().needed == 20
    assert replace(one, scatter=math.nan).judge([mean("", [2.0, 2.2, 1.8], 0.9875, "×")]).power is not None
    assert claim(Region(0, 0, closed=True), statistic=Statistic.EXACT).power() is None


def test_too_few_runs_and_what_a_request_lacks_have_no_power():
    few = claim(ABOVE, least=8, n=5, scatter=0.01, unit="×").power()
    assert (few.power, few.needed) == (0.0, 8)
    lacking = claim(ABOVE, n=5, scatter=0.01, unit="×", needs="a GPU").power()
    assert (lacking.n, lacking.power) == (0, 0.0)
