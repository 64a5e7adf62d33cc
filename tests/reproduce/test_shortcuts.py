"""Shortcuts: the published cases, and the verdicts for given losses."""

import math

import pytest

from highway_bench.blocks import blocks
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.studies.reproduce import shortcuts
from highway_bench.studies.reproduce.base import reproductions
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
)
from highway_bench.tasks.architecture_network import cell_network
from tests.reproduce.conftest import C, N, R, U, rows_of, verdicts

SHORTCUTS = reproductions.get("shortcuts")
FIRST = SHORTCUTS.version.seen
# Losses in the published order of errors; the cases that fail have an error of half
FAILED = (PLAIN, HALF_ONE, EXCLUSIVE[0.0], EXCLUSIVE[-3.0])
PUBLISHED = {
    IDENTITY.name: 0.1,
    NORMED_GATE.name: 0.1,
    SHORTCUT_ONLY[-6.0].name: 0.11,
    EXCLUSIVE[-6.0].name: 0.2,
    EXCLUSIVE[-7.0].name: 0.4,
}
EQUAL = dict.fromkeys((case.name for case in CASES), 0.3)


@pytest.fixture(autouse=True)
def tuned(monkeypatch, request):
    """Every case has a rate that was tuned, but for the test of that guard."""
    if "untuned" not in request.node.name:
        monkeypatch.setattr(shortcuts, "UNTUNED", "")


def outcome(losses=PUBLISHED, accuracies=None):
    """The conclusion for losses and accuracies by case; an accuracy may depend on the number of the seed. A run without
    an accuracy has diverged."""

    def metrics(cell, case):
        number = cell.seed - FIRST
        accuracy = (accuracies or {}).get(case.name, 0.5 if case in FAILED else 0.96)
        accuracy = accuracy(number) if callable(accuracy) else accuracy
        loss = losses.get(case.name, 1.0) * (1 + 0.02 * (cell.seed % 2))
        return {"final_loss": math.inf if math.isnan(accuracy) else loss, "test_accuracy": accuracy}

    cells = SHORTCUTS.cells(Request())
    of_case = len(cells) // len(CASES)
    values = {cell: metrics(cell, CASES[number // of_case]) for number, cell in enumerate(cells)}
    return SHORTCUTS.outcome(rows_of(values), Request())


def first(number, then, rest):
    """An accuracy of the first ``number`` seeds, and of the rest."""
    return lambda seed: then if seed < number else rest


def test_cases_with_untuned_rates_are_not_compared():
    findings = outcome().findings
    assert {one.verdict for one in findings[:4]} == {R}
    assert {(one.verdict, one.why) for one in findings[4:]} == {(N, shortcuts.UNTUNED)}


@pytest.mark.parametrize(
    ("losses", "accuracies", "expected"),
    [
        (PUBLISHED, {}, [R] * 10),
        (EQUAL, {}, [R] * 4 + [U] * 4 + [R] * 2),  # two claim that a case is about as good
        ({IDENTITY.name: 10, EXCLUSIVE[-6.0].name: 20, NORMED_GATE.name: 40}, {}, [*[R] * 4, C, R, C, C, R, C]),
        # With an error of 40 %, identity is no reference; bias −7 is compared with the gate at −6
        (PUBLISHED, {IDENTITY.name: 0.6}, [N] * 6 + [R] + [N] * 3),
        # Every net fails if its training is too short: for a gate, the gate at −6 must not
        (PUBLISHED, {EXCLUSIVE[-6.0].name: 0.6}, [R, R, N, N, R, N, N, R, R, R]),
        # With an error of 6 %, losses say how fast nets train
        (PUBLISHED, {IDENTITY.name: 0.94}, [R] * 4 + [N, N, R, N, N, N]),
    ],
)
def test_the_verdicts(losses, accuracies, expected):
    assert verdicts(outcome(losses, accuracies)) == expected


@pytest.mark.parametrize(
    ("failing", "expected"),
    [(4, N), (5, U), (8, U), (11, U), (12, R)],  # of 4: the published networks are three times as deep
)
def test_a_failure_is_an_error_above_a_fifth_at_clearly_more_than_half_of_the_seeds(failing, expected):
    finding = outcome(accuracies={HALF_ONE.name: first(failing, 0.79, 0.81)}).findings[1]
    assert finding.verdict == expected
    assert (finding.why == finding.claim.irrefutable) == (expected == N)


@pytest.mark.parametrize(("diverged", "why"), [(16, "is untrained"), (9, "is untrained"), (7, "no interval")])
def test_a_case_that_diverged_is_named_and_not_compared(diverged, why):
    finding = outcome(accuracies={HALVES.name: first(diverged, math.nan, 0.96)}).findings[4]
    assert finding.verdict == N
    assert f"{diverged} of 16 seeds" in finding.measured
    assert why in finding.measured


def test_the_cases():
    cells = SHORTCUTS.cells(Request(seeds=1, steps=3, device="cpu"))
    assert len(set(cells)) == len(CASES) == 11
    networks = [cell_network(cell) for cell in cells]
    for network in networks:
        assert sum(type(part).__name__ == "Conv2d" for part in network.modules()) >= 33
    assert count_parameters(networks[0]) == count_parameters(networks[1])  # identity and plain
    gated = blocks.get("highway").layer_parameters(make_family("conv-pair", **NORMED_GATE.family_options), 14)
    identity = blocks.get("residual").layer_parameters(make_family("conv-pair", branch_norm=True), 16)
    assert gated / identity > 1.5  # as published: 1.53 times the parameters
