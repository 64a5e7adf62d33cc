"""Throughput: what is timed, how cells are paired, what becomes of one that fails, and what is reported."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import Block, blocks, register_block
from highway_bench.cell import Cell
from highway_bench.errors import UnknownName
from highway_bench.families import Site, make_family
from highway_bench.tasks import Measurement, Outcome, tasks, throughput
from highway_bench.tasks._step import StackStep
from highway_bench.tasks.throughput import PREPARED_ALONE, NotCompiled, budget_of, step_measurements

MakeCell = Callable[..., Cell]
TASK = tasks.get("throughput")
QUICK = {"seconds": 0.0, "samples": 3}


def by_name(measurements: Any) -> dict[str, Measurement]:
    return {measurement.metric: measurement for measurement in measurements}


@pytest.fixture(params=[RuntimeError, SystemExit])
def raising(request: pytest.FixtureRequest) -> Iterator[str]:
    """A block that cannot run."""

    class Raising(Block):
        def __init__(self, site: Site) -> None:
            super().__init__()
            self.transform = site.family.transform(site)

        def forward(self, x: Tensor) -> Tensor:
            raise request.param("cannot run")

    register_block("throw-away-raising", equation="", source="", summary="")(Raising)
    yield "throw-away-raising"
    blocks.unregister("throw-away-raising")


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Mapping[Cell, Any], Mapping[Cell, Any]]]:
    """What is handed to the clock: (steps, restores) of each call."""
    calls: list[tuple[Mapping[Cell, Any], Mapping[Cell, Any]]] = []
    real = throughput.sample_interleaved

    def noted(steps: Mapping[Cell, Any], budget: Any, *, restore: Mapping[Cell, Any]) -> dict[Cell, list[float]]:
        calls.append((steps, restore))
        return real(steps, budget, restore=restore)

    monkeypatch.setattr(throughput, "sample_interleaved", noted)
    return calls


def test_a_group_is_timed_in_turn(cell: MakeCell, timed: list[Any], roofline: float) -> None:
    cells = [cell("throughput", block, **QUICK) for block in ("plain", "highway", "pre-norm")]
    outcomes = list(TASK.measure(cells))
    ((steps, restores),) = timed
    assert list(steps) == list(restores) == cells
    assert all(step.__func__ is StackStep.step for step in steps.values())
    assert [outcome.cell for outcome in outcomes] == cells
    counts = {len(by_name(outcome.measurements)["step_time"].samples or ()) for outcome in outcomes}
    assert len(counts) == 1  # sample i of each belongs to round i
    assert counts.pop() >= 3


def test_one_that_fails_drops_out_and_the_others_stay_paired(
    cell: MakeCell, timed: list[Any], raising: str, roofline: float
) -> None:
    cells = [cell("throughput", block, **QUICK) for block in ("plain", raising, "no-such-block", "highway")]
    outcomes: dict[str, Outcome] = {outcome.cell.block: outcome for outcome in TASK.measure(cells)}
    assert list(timed[0][0]) == [cells[0], cells[3]]
    assert str(outcomes[raising].error) == "cannot run"
    assert isinstance(outcomes["no-such-block"].error, UnknownName)
    assert not outcomes[raising].measurements
    for block in ("plain", "highway"):
        assert outcomes[block].error is None
        assert outcomes[block].params == blocks.get(block).stack_parameters(make_family("dense"), 8, 2)
        assert outcomes[block].flops_per_item


def test_one_that_lacks_memory_beside_the_others_is_timed_by_itself(
    cell: MakeCell, monkeypatch: pytest.MonkeyPatch, roofline: float
) -> None:
    tries: list[str] = []

    def prepare(one: Cell) -> StackStep:
        tries.append(one.block)
        if tries == ["plain", "highway"]:
            raise torch.OutOfMemoryError("together with plain")
        return StackStep(one)

    monkeypatch.setattr(TASK, "prepare", prepare)
    monkeypatch.setattr(throughput, "sample_interleaved", lambda steps, *_, **__: {one: [1e-3] for one in steps})
    cells = [cell("throughput", block, **QUICK) for block in ("plain", "highway", "pre-norm")]
    outcomes = {outcome.cell.block: outcome for outcome in TASK.measure(cells)}
    assert tries == ["plain", "highway", "pre-norm", "highway"]
    assert all(outcome.error is None for outcome in outcomes.values())
    cut = "cut short by its time limit: 1 of 3 samples"
    assert {one.message for one in outcomes["highway"].measurements} == {PREPARED_ALONE, f"{PREPARED_ALONE}; {cut}"}
    assert {one.message for one in outcomes["plain"].measurements} == {None, cut}


def test_more_blocks_compile_in_one_group_than_torch_allows_forms_of_a_function(
    cell: MakeCell, monkeypatch: pytest.MonkeyPatch, roofline: float
) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    cells = [
        cell("throughput", "highway", mode="compile", block_options={"gate_bias": -float(bias)}, **QUICK)
        for bias in range(10)
    ]
    assert [outcome.error for outcome in TASK.measure(cells)] == [None] * 10


def test_a_group_in_which_all_fail(cell: MakeCell, timed: list[Any], raising: str) -> None:
    cells = [cell("throughput", raising, **QUICK)]
    assert [str(outcome.error) for outcome in TASK.measure(cells)] == ["cannot run"]
    assert timed == []


def test_what_makes_a_group(cell: MakeCell) -> None:
    base = cell("throughput", "plain")
    for same in (
        base.but(block="highway"),
        base.but(width=5),
        base.but(mode="compile"),
        base.but(block="highway", block_options={"gate_bias": -2.0}),
    ):
        assert TASK.group(same) == TASK.group(base)
    for other in (
        base.but(family="mlp"),
        base.but(depth=3),
        base.but(phase="forward"),
        base.but(batch_size=5),
        base.but(dtype="float64"),
        base.but(seq_len=8),
        base.but(nominal_width=9),
        base.but(threads=2),
    ):
        assert TASK.group(other) != TASK.group(base)


def test_figures_from_known_samples(cell: MakeCell, roofline: float) -> None:
    """Ten samples of 1 … 10 ms, a floor of 1 ms."""
    one = cell("throughput")
    work = TASK.prepare(one)
    samples = [step / 1e3 for step in range(1, 11)]
    result = by_name(step_measurements(work, one, samples, first=0.5, breaks=0))
    time = result["step_time"]
    assert (time.value, time.low, time.high) == pytest.approx((5.5e-3, 1.9e-3, 9.1e-3))
    assert time.samples == samples
    assert result["step_time_p99"].value == pytest.approx(9.91e-3)
    assert result["throughput"].value == pytest.approx(4 / 5.5e-3)
    assert result["throughput"].low == pytest.approx(4 / 9.1e-3)
    assert result["flop_rate"].value == pytest.approx(4 * work.flops_per_item / 5.5e-3)
    assert result["slowdown"].value == pytest.approx(5.5)
    assert result["roofline_share"].value == pytest.approx(1 / 5.5)
    assert result["first_step"].value == 0.5
    assert result["budget_mismatch"].value == 0.0
    assert [result[name].value for name in ("matmul_rate", "conv_rate", "copy_rate")] == [3e9, 2e9, 1e9]


@pytest.mark.parametrize(("seconds", "share"), [(1.25e-3, 0.8), (0.96e-3, 1.0417), (0.95e-3, None), (1e-6, None)])
@pytest.mark.parametrize("disturbed", [0, 17])
def test_steps_that_are_faster_than_their_floor_have_no_share(
    cell: MakeCell, roofline: float, seconds: float, share: float | None, disturbed: int
) -> None:
    """Also where other work makes most steps slow; shares are read at the fastest tenth."""
    one = cell("throughput")
    times = [*[seconds] * 3, *[1.0] * disturbed]
    result = by_name(step_measurements(TASK.prepare(one), one, times, first=0.5, breaks=0))
    highest, least = result["roofline_share"].high, result["slowdown"].low
    assert (highest, least) == (pytest.approx((share, 1 / share), rel=1e-4) if share else (None, None))
    for metric in ("roofline_share", "slowdown"):
        assert result[metric].status == result["step_time"].status == "ok"
        assert (result[metric].value is None) == ("their floor" in (result[metric].message or "")) == (share is None)
    assert result["step_time"].value == np.median(times)


def test_exactly_the_declared_metrics(cell: MakeCell, roofline: float) -> None:
    one = cell("throughput")
    work = TASK.prepare(one)
    eager = by_name(step_measurements(work, one, [1.0], 2.0, 0))
    compiled = by_name(step_measurements(work, one.but(mode="compile"), [1.0], 2.0, 3))
    declared = {metric.name for metric in TASK.metrics}
    assert set(compiled) == declared
    assert declared - set(eager) == {"compile_time", "graph_breaks"}
    assert (compiled["compile_time"].value, compiled["graph_breaks"].value) == (1.0, 3.0)


def test_the_mismatch_is_of_the_cells_width(cell: MakeCell, roofline: float) -> None:
    one = cell("throughput", "highway", width=50, nominal_width=71, match="params")
    result = by_name(step_measurements(TASK.prepare(one), one, [1.0], 1.0, 0))
    assert result["budget_mismatch"].value == pytest.approx(5_100 / 5_112 - 1)


def test_the_recipe_says_how_long(cell: MakeCell) -> None:
    budget = budget_of(cell("throughput", seconds=0.25, samples=7), rounds_of=4)
    assert (budget.min_samples, budget.min_seconds) == (7, 1.0)


def test_a_compiled_cell_runs_compiled_and_says_what_compiling_took(
    cell: MakeCell, monkeypatch: pytest.MonkeyPatch, roofline: float
) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    cells = [cell("throughput", mode=mode, **QUICK) for mode in ("eager", "compile")]
    eager, compiled = (by_name(outcome.measurements) for outcome in TASK.measure(cells))
    assert "graph_breaks" not in eager
    assert compiled["graph_breaks"].value == 0
    first, middle = compiled["first_step"].value, compiled["step_time"].value
    assert first is not None
    assert middle is not None
    assert compiled["compile_time"].value == max(0.0, first - middle)


@pytest.mark.parametrize(("mode", "extra"), [("eager", [("highway", 1)]), ("compile", [])])
def test_the_first_cell_does_not_pay_for_the_process(
    cell: MakeCell, monkeypatch: pytest.MonkeyPatch, roofline: float, mode: str, extra: list[tuple[str, int]]
) -> None:
    """The first step of a process takes longer, or of a block in it; a network of one layer takes that time."""
    stepped: list[tuple[str, int]] = []

    def first_step(step: Any, **_: Any) -> float:
        step()
        work = step.__self__.cell
        stepped.append((work.block, work.depth))
        first = [block for block, _ in stepped].count(work.block) == 1
        return 9.0 if len(stepped) == 1 or (mode == "eager" and first) else 3.0

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    monkeypatch.setattr(throughput, "first_step", first_step)
    monkeypatch.setattr(throughput, "_set_up", set())
    cells = [
        cell("throughput", block, mode=mode, seed=seed, **QUICK)
        for seed, block in enumerate(("plain", "plain", "highway"))
    ]
    result = [by_name(outcome.measurements)["first_step"].value for outcome in TASK.measure(cells)]
    assert result == [3.0, 3.0, 3.0]
    assert stepped == [("plain", 1), ("plain", 2), ("plain", 2), *extra, ("highway", 2)]


def test_graph_breaks_are_counted(cell: MakeCell, monkeypatch: pytest.MonkeyPatch, roofline: float) -> None:
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="aot_eager"))
    one = cell("throughput", family="bilstm", seq_len=3, mode="compile", **QUICK)
    (outcome,) = TASK.measure([one])
    breaks = by_name(outcome.measurements)["graph_breaks"].value
    assert breaks is not None
    assert breaks > 0


def test_a_cell_that_only_claims_to_be_compiled_is_an_error(cell: MakeCell, monkeypatch: pytest.MonkeyPatch) -> None:
    def uncompiled(network: nn.Module, **options: Any) -> nn.Module:
        return network

    monkeypatch.setattr(torch, "compile", uncompiled)
    (outcome,) = TASK.measure([cell("throughput", mode="compile", **QUICK)])
    assert isinstance(outcome.error, NotCompiled)


def test_the_measured_floor_is_a_floor(cell: MakeCell) -> None:
    """With the real roofline: a step takes longer than its floor, and both figures say the same."""
    one = cell("throughput", "plain", phase="forward", **QUICK)
    (outcome,) = TASK.measure([one])
    result = by_name(outcome.measurements)
    slowdown, share = result["slowdown"].value, result["roofline_share"].value
    assert slowdown is not None
    assert share is not None
    assert slowdown > 1
    assert share == pytest.approx(1 / slowdown)
    assert np.isfinite(result["flop_rate"].value)


def test_timing_is_alone_and_bound_to_its_machine() -> None:
    assert TASK.alone
    assert TASK.meter
    assert not tasks.get("memory").alone
    assert not tasks.get("trainability").alone
