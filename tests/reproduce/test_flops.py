"""Counts of published networks, and the findings on wrong and missing counts."""

from typing import Any

from highway_bench.reproduce.base import reproductions
from highway_bench.reproduce.claims import Evidence, Verdict
from highway_bench.reproduce.flops import NETS
from highway_bench.reproduce.request import Request
from highway_bench.tasks import tasks

FLOPS = reproductions.get("flops")


def counts(**changes: Any) -> dict[Any, dict[str, float]]:
    return {
        net.cell(): {"parameters": float(net.parameters), "multiply_adds": float(net.multiply_adds or 1)}
        | changes.get(net.name, {})
        for net in NETS
    }


def test_right_counts_reproduce(rows_of: Any) -> None:
    outcome = FLOPS.outcome(rows_of(counts()), Request())
    assert {one.verdict for one in outcome.findings} == {Verdict.REPRODUCED}
    assert len(outcome.tables[0].entries) == len(NETS)


def test_a_wrong_count_contradicts(rows_of: Any) -> None:
    outcome = FLOPS.outcome(rows_of(counts(**{"plain-34": {"multiply_adds": 3.9e9}})), Request())
    wrong = [one.claim.statement for one in outcome.findings if one.verdict == Verdict.CONTRADICTED]
    assert len(wrong) == 3  # the printed count, the exact counts, and the equality with ResNet-34
    assert sum("plain-34" in text for text in wrong) == 3


def test_a_net_that_was_not_counted(rows_of: Any) -> None:
    without = {cell: result for cell, result in counts().items() if cell != NETS[0].cell()}
    outcome = FLOPS.outcome(rows_of(without), Request())
    missing = [one.measured for one in outcome.findings if one.verdict == Verdict.NOT_TESTABLE]
    assert missing == ["not counted"] * 2  # the printed count and the exact counts
    whole = FLOPS.outcome(rows_of(counts()), Request())
    assert [one.claim.statement for one in outcome.findings] == [one.claim.statement for one in whole.findings]


def test_counts_computed_by_hand_are_not_claims_of_a_paper(rows_of: Any) -> None:
    result = FLOPS.outcome(rows_of(counts()), Request()).findings
    assert {one.claim.evidence for one in result if one.claim.source.startswith("arithmetic")} == {Evidence.COMPUTED}
    assert {one.claim.evidence for one in result if not one.claim.source.startswith("arithmetic")} == {Evidence.SOURCE}


def test_small_nets_are_counted_as_expected() -> None:
    cost = tasks.get("cost")
    for net in NETS:
        if net.depth <= 21:
            (outcome,) = cost.measure([net.cell()])
            result = [measurement.value for measurement in outcome.measurements]
            assert result == [net.parameters, net.multiply_adds or result[1]], net.name
