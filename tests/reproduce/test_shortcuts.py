"""Shortcuts: the published cases, and the verdicts for given losses."""

from __future__ import annotations

import math

import pytest

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.studies.reproduce import shortcuts
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.claims import Verdict
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.shortcuts import (
    CASES,
    EXCLUSIVE,
    HALF_ONE,
    HALVES,
    IDENTITY,
    NORMED_GATE,
    PLAIN,
    SHORTCUT_ONLY,
    Case,
)
from highway_bench.tasks.architecture_network import cell_network
from tests.reproduce.conftest import C, N, R, U, Values, rows_of, verdicts

SHORTCUTS = reproductions.get("shortcuts")
# Losses in the published order of errors; the cases that fail have an error of half
FAILED = {one.name for one in (PLAIN, HALF_ONE, EXCLUSIVE[0.0], EXCLUSIVE[-3.0])}
PUBLISHED = {
    IDENTITY.name: 0.1,
    NORMED_GATE.name: 0.1,
    SHORTCUT_ONLY[-6.0].name: 0.11,
    EXCLUSIVE[-6.0].name: 0.2,
    EXCLUSIVE[-7.0].name: 0.4,
}


@pytest.fixture(autouse=True)
def tuned(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Every case has a rate that was tuned, but for the test of that guard."""
    if "untuned" not in request.node.name:
        monkeypatch.setattr(shortcuts, "UNTUNED", "")


def test_cases_with_untuned_rates_are_not_compared() -> None:
    findings = outcome(values(PUBLISHED)).findings
    assert {one.verdict for one in findings[:4]} == {R}
    assert {(one.verdict, one.why) for one in findings[4:]} == {(N, shortcuts.UNTUNED)}


def cells_of(case: Case) -> list[Cell]:
    """The runs of a case."""
    cells = SHORTCUTS.cells(Request())
    seeds = len(cells) // len(CASES)
    return cells[CASES.index(case) * seeds :][:seeds]


def values(losses: dict[str, float]) -> Values:
    return {
        cell: {
            "final_loss": losses.get(case.name, 1.0) * (1 + 0.02 * (cell.seed % 2)),
            "test_accuracy": 0.5 if case.name in FAILED else 0.96,
        }
        for case in CASES
        for cell in cells_of(case)
    }


def untrain(result: Values, case: Case, accuracy: float) -> None:
    """Give every run of a case this accuracy."""
    for cell in cells_of(case):
        result[cell]["test_accuracy"] = accuracy


def outcome(result: Values) -> Conclusion:
    return SHORTCUTS.outcome(rows_of(result), Request())


def test_the_published_order_is_reproduced() -> None:
    assert verdicts(outcome(values(PUBLISHED))) == [R] * 10


def test_equal_losses_decide_little() -> None:
    result = verdicts(outcome(values(dict.fromkeys((case.name for case in CASES), 0.3))))
    assert result[:4] == [R] * 4  # by their errors
    assert result[4:] == [U] * 4 + [R] * 2  # two claim that a case is about as good


def test_the_other_order_contradicts() -> None:
    result = verdicts(outcome(values({IDENTITY.name: 10.0, EXCLUSIVE[-6.0].name: 20.0, NORMED_GATE.name: 40.0})))
    assert result == [R, R, R, R, C, R, C, C, R, C]


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        (4, N),  # the published networks are three times as deep
        (5, U),
        (8, U),
        (11, U),
        (12, R),
    ],
)
def test_a_failure_is_an_error_above_a_fifth_at_clearly_more_than_half_of_the_seeds(
    failing: int, expected: Verdict
) -> None:
    result = values(PUBLISHED)
    cells = cells_of(HALF_ONE)
    for number, cell in enumerate(cells):
        result[cell]["test_accuracy"] = 0.79 if number < failing else 0.81
    finding = outcome(result).findings[1]
    assert (finding.verdict, len(cells)) == (expected, 16)
    assert (finding.why == finding.claim.irrefutable) == (expected == N)


@pytest.mark.parametrize(
    ("diverged", "why"),
    [(16, "constant 0.5, 0.5 is untrained"), (9, "constant 0.5, 0.5 is untrained"), (7, "no interval")],
)
def test_a_case_that_diverged_is_named_and_not_compared(diverged: int, why: str) -> None:
    result = values(PUBLISHED)
    for cell in cells_of(HALVES)[:diverged]:
        result[cell] = {"final_loss": math.inf}
    finding = outcome(result).findings[4]
    assert finding.verdict == N
    assert f"diverged at {diverged} of 16 seeds, the other at 0 of 16" in finding.measured
    assert why in finding.measured


def test_nothing_is_compared_with_a_reference_that_fails_by_the_sources_criterion() -> None:
    """With an error of 40 %, identity is no reference."""
    result = values(PUBLISHED)
    untrain(result, IDENTITY, 0.6)
    findings = outcome(result).findings
    findings = [one for one in findings if "bias −7" not in one.claim.statement]  # compared with the gate at −6
    assert all("identity is untrained" in one.measured for one in findings)
    assert {one.verdict for one in findings} == {N}


def test_a_gate_cannot_fail_if_the_gate_that_the_source_trains_fails_too() -> None:
    """Every net fails if its training is too short: the net without a gate is no reference for that."""
    result = values(PUBLISHED)
    untrain(result, EXCLUSIVE[-6.0], 0.6)
    findings = outcome(result).findings[:4]
    assert [one.verdict for one in findings] == [R] * 2 + [N] * 2
    assert all("exclusive gate at −6 is untrained" in one.measured for one in findings[2:])
    untrain(result, EXCLUSIVE[-3.0], 0.9)
    trains = outcome(result).findings[3]
    assert trains.why == trains.claim.irrefutable


def test_nothing_is_compared_with_an_identity_that_has_far_to_go() -> None:
    """With an error of 6 %, losses say how fast nets train. The exclusive gate at −7 is compared with that at −6."""
    result = values(PUBLISHED)
    untrain(result, IDENTITY, 0.94)
    assert verdicts(outcome(result))[4:] == [N, N, R, N, N, N]


def test_a_net_that_fails_by_the_sources_criterion_is_not_the_worse_one() -> None:
    result = values(PUBLISHED)
    untrain(result, EXCLUSIVE[-6.0], 0.6)
    finding = outcome(result).findings[5]
    assert finding.verdict == N
    assert "exclusive gate at −6 is untrained" in finding.measured


def test_one_seed_has_no_interval() -> None:
    one = {cell: result for cell, result in values(PUBLISHED).items() if cell.seed == SHORTCUTS.version.seen}
    assert set(verdicts(outcome(one))) == {N}


def test_the_cases() -> None:
    cells = SHORTCUTS.cells(Request(seeds=1, steps=3, device="cpu"))
    assert len(set(cells)) == len(CASES) == 11
    for cell in cells:
        network = cell_network(cell)
        layers = sum(type(part).__name__ == "Conv2d" for part in network.modules())
        assert layers >= 33
        assert cell.recipe["steps"] == 3
    plain, identity = (count_parameters(cell_network(cells[index])) for index in (1, 0))
    assert plain == identity
    family = make_family("conv-pair", **NORMED_GATE.family_options)
    assert (
        blocks.get("highway").layer_parameters(family, 14)
        / blocks.get("residual").layer_parameters(make_family("conv-pair", branch_norm=True), 16)
        > 1.5
    )  # as published: 1.53 times the parameters
