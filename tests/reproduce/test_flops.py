"""Counts of published networks, and the findings on wrong and missing counts."""

from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.claims import Evidence
from highway_bench.studies.reproduce.flops import NETS
from highway_bench.studies.reproduce.request import Request
from highway_bench.tasks import tasks
from tests.reproduce.conftest import C, N, R, rows_of, verdicts

FLOPS = reproductions.get("flops")


def counts(**changes):
    return {
        net.cell(): {"parameters": float(net.parameters), "multiply_adds": float(net.multiply_adds or 1)}
        | changes.get(net.name, {})
        for net in NETS
    }


def outcome(values):
    return FLOPS.outcome(rows_of(values), Request())


def test_right_counts_reproduce():
    result = outcome(counts())
    assert set(verdicts(result)) == {R}
    assert len(result.tables[0].entries) == len(NETS)


def test_a_wrong_count_contradicts():
    """The printed count, the exact counts, and the equality with ResNet-34."""
    result = outcome(counts(**{"plain-34": {"multiply_adds": 3.9e9}}))
    assert verdicts(result, "plain-34") == [C] * 3
    assert verdicts(result).count(C) == 3


def test_a_net_that_was_not_counted():
    """Neither its printed count nor its exact counts."""
    result = outcome({cell: own for cell, own in counts().items() if cell != NETS[0].cell()})
    assert verdicts(result).count(N) == 2


def test_counts_computed_by_hand_are_not_claims_of_a_paper():
    result = outcome(counts()).findings
    assert {one.claim.evidence for one in result if one.claim.source.startswith("arithmetic")} == {Evidence.COMPUTED}
    assert {one.claim.evidence for one in result if not one.claim.source.startswith("arithmetic")} == {Evidence.SOURCE}


def test_small_nets_are_counted_as_expected():
    cost = tasks.get("cost")
    for net in NETS:
        if net.depth <= 21:
            (outcome,) = cost.measure([net.cell()])
            result = [measurement.value for measurement in outcome.measurements]
            assert result == [net.parameters, net.multiply_adds or result[1]], net.name
