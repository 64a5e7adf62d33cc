"""Shortcuts: the published cases, and the verdicts for given losses."""

from __future__ import annotations

import math
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Verdict
from highway_bench.reproduce.request import Request
from highway_bench.reproduce.shortcuts import CASES, EXCLUSIVE, HALVES, IDENTITY, NORMED_GATE, SHORTCUT_ONLY, cells_of
from highway_bench.tasks.architecture_network import cell_network

SHORTCUTS = reproductions.get("shortcuts")
# Losses in the published order of errors
PUBLISHED = {IDENTITY.name: 0.1, NORMED_GATE.name: 0.1, SHORTCUT_ONLY[-6.0].name: 0.11, EXCLUSIVE[-6.0].name: 0.2}


def values(losses: dict[str, float], *, spread: float = 0.02) -> dict[Any, dict[str, float]]:
    return {
        cell: {"final_loss": losses.get(case.name, 1.0) * (1 + spread * (cell.seed % 2)), "test_accuracy": 0.9}
        for case in CASES
        for cell in cells_of(case, Request())
    }


def verdicts(frame: Any) -> list[Verdict]:
    return [one.verdict for one in SHORTCUTS.outcome(frame, Request()).findings]


def test_the_published_order_is_reproduced(rows_of: Any) -> None:
    outcome = SHORTCUTS.outcome(rows_of(values(PUBLISHED)), Request())
    assert {one.verdict for one in outcome.findings} == {Verdict.REPRODUCED}
    assert outcome.pictures[0].title.startswith("Lowest training loss: identity; highest: ")
    assert sum("arXiv:1603.05027" in one.claim.source for one in outcome.findings) == 8
    assert sum("counter-result" in one.claim.statement for one in outcome.findings) == 1


def test_equal_losses_decide_little(rows_of: Any) -> None:
    result = verdicts(rows_of(values(dict.fromkeys((case.name for case in CASES), 0.3))))
    assert result == [Verdict.UNDECIDED] * 7 + [Verdict.REPRODUCED] * 2  # two claim that a case is about as good


def test_the_other_order_contradicts(rows_of: Any) -> None:
    result = verdicts(rows_of(values({IDENTITY.name: 10.0, EXCLUSIVE[-6.0].name: 20.0, NORMED_GATE.name: 40.0})))
    assert result.count(Verdict.CONTRADICTED) == 7


def test_a_case_that_diverged_is_not_dropped(rows_of: Any) -> None:
    diverged = values(PUBLISHED | {HALVES.name: math.inf})
    outcome = SHORTCUTS.outcome(rows_of(diverged), Request())
    assert outcome.findings[2].verdict == Verdict.REPRODUCED
    assert outcome.findings[2].measured == "loss (diverged at 4 of 4 seeds, the other at 0 of 4): ∞×"


def test_nothing_is_compared_with_a_reference_that_fails_by_the_sources_criterion(rows_of: Any) -> None:
    """The gate at −6, with an error of 40 %, is no reference for the one at −3."""
    result = values(PUBLISHED | {EXCLUSIVE[-6.0].name: 2.2, EXCLUSIVE[-3.0].name: 0.05})
    for cell in cells_of(EXCLUSIVE[-6.0], Request()):
        result[cell]["test_accuracy"] = 0.6
    findings = SHORTCUTS.outcome(rows_of(result), Request()).findings
    untrained = [one for one in findings if "exclusive gate at −6 is untrained" in one.measured]
    assert len(untrained) == 2
    assert {one.verdict for one in untrained} == {Verdict.NOT_TESTABLE}
    assert findings[5].verdict == Verdict.REPRODUCED  # −6 itself is compared with identity


def test_one_seed_has_no_interval(rows_of: Any) -> None:
    one = {cell: result for cell, result in values(PUBLISHED).items() if cell.seed == 0}
    assert set(verdicts(rows_of(one))) == {Verdict.NOT_TESTABLE}


def test_the_cost_of_the_counter_result_is_reported(rows_of: Any) -> None:
    result = values(PUBLISHED)
    for cell, metrics in result.items():
        metrics["step_seconds"] = 0.02 if cell.width == NORMED_GATE.width else 0.01
    rows = rows_of(result)
    rows["params"] = [1_500.0 if width == NORMED_GATE.width else 1_000.0 for width in rows["width"]]
    (table,) = SHORTCUTS.outcome(rows, Request()).tables
    assert {"parameters", "step"} <= {head.text for head in table.heads}
    assert "1.50× the parameters" in table.note
    assert "takes 20.0 ms against 10.0 ms, in runs that are not paired" in table.note
    assert "2.00×" not in table.note


def test_the_cases() -> None:
    cells = SHORTCUTS.cells(Request(seeds=1, steps=3, device="cpu"))
    assert len(set(cells)) == len(CASES) == 10
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
