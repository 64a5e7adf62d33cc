"""More than a thousand layers: the cells, and the verdicts for given losses."""

import math

import numpy as np
import pytest

from highway_bench.errors import BadInput
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request
from tests.reproduce.conftest import C, N, R, U, outcome_of

STUDY = reproductions.get("thousand")
FIRST = STUDY.version.seen
DESK = Request(depth=(1_101,), seeds=3)
POINTS = 50
CHANCE = math.log(10)
FALLS = np.geomspace(CHANCE, 0.05, POINTS)  # trains
SLOWLY = np.linspace(CHANCE, 0.9, POINTS)  # under way
HALTS = np.concatenate([np.linspace(CHANCE, 0.9, 30), np.full(POINTS - 30, 0.9)])  # left chance, then stopped improving
STAYS = np.full(POINTS, 2.3)
GONE = np.array([math.inf])


def outcome(curve, request=DESK):
    """The conclusion for these losses by step."""

    def metrics(cell):
        losses = curve(cell)
        steps = {("loss", "step", 4.0 * step): loss for step, loss in enumerate(losses, 1)}
        return {"final_loss": losses[-1], "success": float(losses[-1] <= 0.1 * CHANCE), "rate": 0.1, **steps}

    return outcome_of(STUDY, metrics, request)


def test_the_depth_counts_the_plain_first_layer():
    assert {cell.depth for cell in STUDY.cells(Request(depth=(2, 31)))} == {1, 30}
    with pytest.raises(BadInput, match="2 at least"):
        STUDY.cells(Request(depth=(1,)))


@pytest.mark.parametrize(("highway", "verdict"), [(FALLS, R), (SLOWLY, R), (HALTS, U), (STAYS, C), (GONE, C)])
def test_the_verdict_on_highway(highway, verdict):
    finding, *_ = outcome(lambda cell: highway if cell.block == "highway" else STAYS).findings
    assert finding.verdict == verdict


@pytest.mark.parametrize(("plain", "text"), [(GONE, "3 of 3 seeds diverge"), (SLOWLY, "3 of 3 seeds are")])
def test_the_control_is_reported_and_not_judged(plain, text):
    finding, *_ = outcome(lambda cell: FALLS if cell.block == "highway" else plain).findings
    assert f"plain: {text}" in finding.measured
    assert finding.verdict == R


def test_one_seed_that_stalls_among_three_decides_nothing():
    finding, *_ = outcome(lambda cell: STAYS if cell.seed == FIRST else FALLS).findings
    assert finding.verdict == U
    assert "1 of 3 seeds stalls" in finding.measured


def test_each_gate_bias_is_judged_by_its_own_runs():
    findings = outcome(lambda cell: STAYS if cell.block_options.get("gate_bias") == -1 else FALLS).findings
    assert [one.verdict for one in findings] == [R, C, R, R]
    assert "bias −1" in findings[1].claim.statement


def test_a_shallower_network_is_shown_and_decides_nothing():
    shallow = outcome(lambda cell: FALLS, Request(depth=(31,), seeds=3))
    assert [one.verdict for one in shallow.findings] == [N]


def test_success_by_depth_leads():
    """Plain fails at 20 layers and trains at 200: success is not monotone in depth, and L50 alone would hide it."""
    trains = {20: 0, 200: 10, 1_101: 0}

    def curve(cell):
        return FALLS if cell.block == "highway" or cell.seed - FIRST < trains[cell.depth + 1] else STAYS

    result = outcome(curve, Request(depth=(20, 200, 1_101)))
    table, *_ = result.tables
    rows = {entry[0]: dict(zip([head.text for head in table.heads], entry, strict=True)) for entry in table.entries}
    assert (table.name, rows["plain"]["200 layers"]) == ("thousand-success", "10 of 10")
    rises = "where success rises with depth"
    assert "p = 0.0005" in rows["plain"][rises]
    assert (rows["highway"]["L50"], rows["highway"][rises]) == ("> 1101", "none")
    assert [picture.name for picture in result.pictures] == ["thousand-success"]
