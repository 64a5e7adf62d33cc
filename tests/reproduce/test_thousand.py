"""More than a thousand layers: the cells, and the verdicts for given losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.studies.reproduce.base import Conclusion, reproductions
from highway_bench.studies.reproduce.claims import Finding, Verdict
from highway_bench.studies.reproduce.request import Request
from tests.reproduce import conftest
from tests.reproduce.conftest import C, N, R, U, followed

STUDY = reproductions.get("thousand")
FIRST = STUDY.version.seen
DESK = Request(depth=(1_101,), seeds=3)
POINTS = 50
CHANCE = math.log(10)
FALLS = np.geomspace(CHANCE, 0.05, POINTS)  # trains
SLOWLY = np.linspace(CHANCE, 0.9, POINTS)  # under way
HALTS = np.concatenate([np.linspace(CHANCE, 0.9, 30), np.full(POINTS - 30, 0.9)])  # left chance, then stopped improving
STAYS = np.full(POINTS, 2.3)
Curve = Callable[[Cell], Any]


def finals(request: Request) -> list[Cell]:
    """The cells that count."""
    every = followed(STUDY, request, lambda cell: {"final_loss": 0.1, "success": 1.0})
    return [cell for cell in every if cell.trial is None]


def outcome(curve: Curve, request: Request = DESK) -> Conclusion:
    """The conclusion for these losses by step. A curve of ``None`` is a run that diverged."""

    def metrics(cell: Cell) -> dict[Any, float]:
        losses = curve(cell)
        final = math.inf if losses is None else float(losses[-1])
        steps = {("loss", "step", 4.0 * step): loss for step, loss in enumerate([] if losses is None else losses, 1)}
        return {"final_loss": final, "success": float(final <= 0.1 * CHANCE), **steps}

    rows = conftest.rows_of({cell: metrics(cell) for cell in finals(request)})
    gone = rows.loc[rows["status"] == "diverged", "digest"]
    return STUDY.outcome(rows.assign(status=rows["status"].mask(rows["digest"].isin(gone), "diverged")), request)


def on_highway(highway: Any, plain: Any = STAYS) -> Finding:
    (finding,) = outcome(lambda cell: highway if cell.block == "highway" else plain).findings
    return finding


def test_the_cells() -> None:
    cells = finals(Request())
    assert {(cell.block, cell.width) for cell in cells} == {("highway", 50), ("plain", 71)}
    assert {cell.depth + 1 for cell in cells} == {10, 20, 50, 100, 200, 500, 1_101}
    assert {cell.seed for cell in cells} == set(range(13, 23))
    assert all("gate_bias" not in cell.block_options for cell in cells)
    assert {cell.depth for cell in finals(Request(depth=(2, 31)))} == {1, 30}
    with pytest.raises(BadInput, match=r"^the depth counts the plain first layer, so it is 2 at least$"):
        STUDY.cells(Request(depth=(1,)))


@pytest.mark.parametrize(
    ("highway", "verdict"),
    [
        (FALLS, R),
        (SLOWLY, R),
        (HALTS, U),
        (STAYS, C),
        (None, C),
    ],
)
def test_the_verdict_on_highway(highway: Any, verdict: Verdict) -> None:
    assert on_highway(highway).verdict == verdict


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        (STAYS, "3 of 3 seeds stall"),
        (None, "3 of 3 seeds diverge"),
        (SLOWLY, "3 of 3 seeds are under way"),
        (FALLS, "3 of 3 seeds train"),
    ],
)
def test_the_control_is_reported_and_not_judged(plain: Any, text: str) -> None:
    result = on_highway(FALLS, plain)
    assert f"plain: {text}" in result.measured
    assert result.verdict == R


def test_one_seed_that_stalls_among_three_decides_nothing() -> None:
    result = outcome(lambda cell: STAYS if cell.seed == FIRST else FALLS).findings[0]
    assert result.verdict == U
    assert "1 of 3 seeds stalls, 2 of 3 seeds train" in result.measured


def test_a_shallower_network_is_shown_and_decides_nothing() -> None:
    shallow = outcome(lambda cell: FALLS, Request(depth=(31,), seeds=3))
    assert [one.verdict for one in shallow.findings] == [N]


def test_success_by_depth_leads() -> None:
    """Plain fails at 20 layers and trains at 200: success is not monotone in depth, and L50 alone would hide it."""
    trains = {20: 0, 200: 10, 1_101: 0}

    def curve(cell: Cell) -> Any:
        return FALLS if cell.block == "highway" or cell.seed - FIRST < trains[cell.depth + 1] else STAYS

    result = outcome(curve, Request(depth=(20, 200, 1_101)))
    table = result.tables[0]
    assert table.name == "thousand-success"
    plain, highway = (dict(zip([head.text for head in table.heads], entry, strict=True)) for entry in table.entries)
    assert plain["200 layers"] == "10 of 10"
    rises = "0 of 10 at 20 layers, 10 of 10 at 200 (monotone over all depths: p = 0.0005)"
    assert plain["where success rises with depth"] == rises
    assert (highway["L50"], highway["where success rises with depth"]) == ("> 1101", "none")
    assert [picture.name for picture in result.pictures] == ["thousand-success"]
