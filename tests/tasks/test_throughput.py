"""Throughput: what is timed, how cells are paired, what becomes of one that fails, and what is reported."""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest
import torch
from torch import Tensor

from highway_bench.blocks import Block, blocks, register_block
from highway_bench.errors import UnknownName
from highway_bench.families import Site, make_family
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED, Budget, Turns
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.tasks import _timing, tasks, throughput
from highway_bench.tasks._step import StackStep
from highway_bench.tasks._timing import CellTimes, GroupTimes, plain_of
from highway_bench.tasks.modes import CACHES
from highway_bench.tasks.throughput import NotCompiled, ratio, step_measurements
from tests.cells import cell

TASK = tasks.get("throughput")
pytestmark = pytest.mark.usefixtures("roofline")
ON_GPU = {"gpu_time", "gpu_ratio", "clock_rate", "capped"}
QUICK = {"seconds": 0.0, "samples": 3, "processes": 1, "limit": 0}


def quick(block="highway", **changes):
    return cell("throughput", block, **{**QUICK, **changes})


def by_name(measurements):
    return {one.metric: one for one in measurements}


def measured(one):
    """The measurements of a cell, by metric, or its error."""
    (outcome,) = TASK.measure([one])
    if outcome.error is not None:
        raise outcome.error
    return by_name(outcome.measurements)


@pytest.fixture
def eager_backend(monkeypatch):
    """Compiling traces alone, which is quick."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))


@pytest.fixture(params=[RuntimeError, SystemExit])
def raising(request):
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
def timed(monkeypatch):
    """What is handed to the clock: (steps, restores) of each call."""
    calls = []
    real = _timing.take_turns

    def noted(steps, budget, *, restore, **options):
        calls.append((steps, restore))
        return real(steps, budget, restore=restore, **options)

    monkeypatch.setattr(_timing, "take_turns", noted)
    return calls


def samples_of(cell, seconds, **fields):
    """A group of one cell, timed in one process in turn with plain and a yard-stick, which take a second each."""
    ones = [1.0] * len(seconds)
    return GroupTimes({cell: CellTimes(seconds, seconds, ones, ones, [0] * len(seconds))}, processes=1, **fields)


def figures(one, seconds, breaks=0):
    """The measurements of a cell whose steps took these seconds, and the first one half a second."""
    return by_name(step_measurements(TASK.prepare(one.but(mode="eager")), one, samples_of(one, seconds), 0.5, breaks))


def test_a_group_is_timed_in_turn(timed):
    cells = [quick(block) for block in ("plain", "highway", "pre-norm")]
    outcomes = list(TASK.measure(cells))
    ((steps, restores),) = timed
    assert list(steps) == list(restores) == [*cells, _timing.YARDSTICK]
    assert all(steps[one].__func__ is StackStep.step for one in cells)
    assert [outcome.cell for outcome in outcomes] == cells
    plain, *others = (by_name(outcome.measurements)["step_time"] for outcome in outcomes)
    for time in others:
        assert time.paired["plain"] == plain.samples  # sample i of each belongs to round i
        assert len(time.paired["yardstick"]) == len(time.paired["wall"]) == len(time.samples)


def test_plain_is_timed_with_a_block_that_is_measured_alone(timed):
    one = quick(width=50, nominal_width=71)
    time, plain = measured(one)["step_time"], plain_of(one)
    assert (plain.block, plain.width) == ("plain", 71)
    assert list(timed[0][0]) == [one, plain, _timing.YARDSTICK]
    assert len(time.paired["plain"]) == len(time.samples)


def test_several_processes_give_a_ratio_its_interval():
    result = measured(quick(processes=2))
    assert set(result["step_time"].paired["process"]) == {0, 1}
    ratio = result["plain_ratio"]
    assert ratio.count == result["yardstick_ratio"].count == 2
    assert 0 < ratio.low < ratio.value < ratio.high


@pytest.mark.parametrize(
    ("fields", "low", "message"),
    [
        ({}, 1.45, None),
        ({"all_disturbed": 1}, None, ALL_DISTURBED),
        (
            {"all_disturbed": 1, "capped": 9, "caps": frozenset({"power cap", "heat"})},
            None,
            f"{ALL_CAPPED} (heat, power cap)",
        ),
    ],
)
def test_disturbed_rounds_and_a_capped_clock_decide_no_ratio(fields, low, message):
    found = ratio("plain_ratio", IntervalEstimate(1.5, 1.45, 1.55, 3), GroupTimes({}, processes=3, **fields))
    assert (found.value, found.low, found.message) == (1.5, low, message)


def test_a_step_that_waited_is_still_as_long_as_itself():
    times = CellTimes([1.0, 1.1], [2.0, 2.2], [1.0, 1.1], [1.0, 1.0], [0, 1])
    assert times.ratio(times.plain) == IntervalEstimate(1.0, 1.0, 1.0, 2)
    assert times.ratio(times.yardstick).low < ratio_over_processes(times.seconds, times.yardstick, times.process).low


def test_rounds_of_a_gpu_are_kept_with_the_cell():
    plain, one = (cell("throughput", block, device="cuda") for block in ("plain", "highway"))
    group = GroupTimes({plain: CellTimes(), one: CellTimes()})
    seconds = {plain: [1.0, 1.0], one: [2.0, 2.2], _timing.YARDSTICK: [1.0, 1.0]}
    on_gpu = {plain: [0.5, 0.5], one: [0.8, 0.9]}
    for capped in (1, 0):
        caps = frozenset({"heat"} if capped else ())
        options = {"on_gpu": on_gpu, "clock_rate": [1e9, 2e9], "capped": capped, "caps": caps}
        group.add(Turns(seconds, seconds, 1, 1, False, False, **options))
    times = group.cells[one]
    assert (times.gpu, times.plain_gpu, times.clock_rate) == ([0.8, 0.9] * 2, [0.5] * 4, [1e9, 2e9] * 2)
    assert times.paired["clock_rate"] == times.clock_rate
    result = by_name(throughput.on_gpu(times, group))
    assert set(result) == ON_GPU
    assert (result["gpu_time"].value, result["gpu_time"].samples) == (pytest.approx(0.85), [0.8, 0.9] * 2)
    assert result["gpu_ratio"].value == pytest.approx((0.8 * 0.9) ** 0.5 / 0.5, rel=1e-2)
    assert result["gpu_ratio"].count == 2
    assert result["clock_rate"].value == 1.5e9
    assert (result["capped"].value, result["capped"].message) == (1.0, "heat")


def test_a_process_that_dies_costs_only_its_own_samples(monkeypatch):
    def broken(*_):
        raise RuntimeError("killed")

    monkeypatch.setattr(_timing, "call_in", broken)
    result = measured(quick(processes=3))
    assert (result["plain_ratio"].low, result["plain_ratio"].count) == (None, 1)
    assert result["step_time"].message == "; ".join(["a process gave no samples: RuntimeError: killed"] * 2)


def test_one_that_fails_drops_out_and_the_others_are_timed(timed, raising):
    cells = [quick(block) for block in ("plain", raising, "no-such-block", "highway")]
    outcomes = {outcome.cell.block: outcome for outcome in TASK.measure(cells)}
    assert list(timed[0][0]) == [cells[0], cells[3], _timing.YARDSTICK]
    assert str(outcomes[raising].error) == "cannot run"
    assert isinstance(outcomes["no-such-block"].error, UnknownName)
    assert not outcomes[raising].measurements
    for block in ("plain", "highway"):
        assert outcomes[block].error is None
        assert outcomes[block].params == blocks.get(block).stack_parameters(make_family("dense"), 8, 2)
        assert outcomes[block].flops_per_item


def test_one_that_lacks_memory_beside_the_others_is_timed_after_them(monkeypatch, timed):
    tries = []

    def prepare(one):
        tries.append(one.block)
        if tries == ["plain", "highway"]:
            raise torch.OutOfMemoryError("together with plain")
        return StackStep(one)

    monkeypatch.setattr(TASK, "prepare", prepare)
    cells = [quick(block) for block in ("plain", "highway", "pre-norm")]
    outcomes = {outcome.cell.block: outcome for outcome in TASK.measure(cells)}
    assert tries == ["plain", "highway", "pre-norm", "highway"]
    assert all(outcome.error is None for outcome in outcomes.values())
    assert [list(steps) for steps, _ in timed] == [
        [cells[0], cells[2], _timing.YARDSTICK],
        [cells[1], cells[0], _timing.YARDSTICK],
    ]


@pytest.mark.usefixtures("eager_backend")
def test_more_blocks_compile_in_one_group_than_torch_allows_forms_of_a_function():
    short = {"mode": "compile", "depth": 1, "phase": "forward"}
    cells = [quick(block_options={"gate_bias": -float(bias)}, **short) for bias in range(10)]
    assert [outcome.error for outcome in TASK.measure(cells)] == [None] * 10


def test_what_makes_a_group():
    base = quick("plain")
    for same in ({"block": "highway", "block_options": {"gate_bias": -2.0}}, {"width": 5}, {"mode": "compile"}):
        assert TASK.group(base.but(**same)) == TASK.group(base)
    other = {"family": "mlp", "depth": 3, "phase": "forward", "batch_size": 5, "dtype": "float64", "seq_len": 8}
    for name, value in (other | {"nominal_width": 9, "threads": 2}).items():
        assert TASK.group(base.but(**{name: value})) != TASK.group(base)


def test_figures_from_known_samples():
    """Ten samples of 1 … 10 ms, a floor of 1 ms."""
    samples = [step / 1e3 for step in range(1, 11)]
    result = figures(quick(), samples)
    time = result["step_time"]
    assert (time.value, time.low, time.high) == pytest.approx((5.5e-3, 1.9e-3, 9.1e-3))
    assert time.samples == samples
    assert result["step_time_p99"].value == pytest.approx(9.91e-3)
    assert result["throughput"].value == pytest.approx(4 / 5.5e-3)
    assert result["throughput"].low == pytest.approx(4 / 9.1e-3)
    assert result["flop_rate"].value == pytest.approx(4 * TASK.prepare(quick()).flops_per_item / 5.5e-3)
    assert result["slowdown"].value == pytest.approx(5.5)
    assert result["roofline_share"].value == pytest.approx(1 / 5.5)
    assert result["first_step"].value == 0.5
    assert result["budget_mismatch"].value == 0.0
    assert [result[name].value for name in ("matmul_rate", "conv_rate", "copy_rate")] == [3e9, 2e9, 1e9]


@pytest.mark.parametrize(("seconds", "share"), [(1.25e-3, 0.8), (0.96e-3, 1.0417), (0.95e-3, None), (1e-6, None)])
@pytest.mark.parametrize("disturbed", [0, 17])
def test_steps_that_are_faster_than_their_floor_have_no_share(seconds, share, disturbed):
    """Also where other work makes most steps slow; shares are read at the fastest tenth."""
    times = [*[seconds] * 3, *[1.0] * disturbed]
    result = figures(quick(), times)
    highest, least = result["roofline_share"].high, result["slowdown"].low
    assert (highest, least) == (pytest.approx((share, 1 / share), rel=1e-4) if share else (None, None))
    for metric in ("roofline_share", "slowdown"):
        assert result[metric].status == result["step_time"].status == "ok"
        assert (result[metric].value is None) == ("their floor" in (result[metric].message or "")) == (share is None)
    assert result["step_time"].value == np.median(times)


def test_exactly_the_declared_metrics():
    eager, compiled = figures(quick(), [0.2]), figures(quick(mode="compile"), [0.2], breaks=3)
    assert set(compiled) == {metric.name for metric in TASK.metrics} - ON_GPU
    assert set(compiled) - set(eager) == {"compile_time", "graph_breaks"}
    assert (compiled["compile_time"].value, compiled["graph_breaks"].value) == (pytest.approx(0.3), 3.0)


@pytest.mark.usefixtures("eager_backend")
def test_a_compiled_cell_runs_compiled_and_says_what_compiling_took():
    eager, compiled = (
        by_name(outcome.measurements) for outcome in TASK.measure([quick(mode=mode) for mode in ("eager", "compile")])
    )
    assert "graph_breaks" not in eager
    assert compiled["graph_breaks"].value == 0
    compiling = compiled["first_step"].value - compiled["step_time"].value
    assert compiled["compile_time"].value == max(0.0, compiling)
    assert measured(quick(family="bilstm", seq_len=3, mode="compile"))["graph_breaks"].value > 0


@pytest.mark.usefixtures("eager_backend")
def test_a_compiled_group_has_a_new_cache_on_disk(monkeypatch):
    """So what compiles takes a fresh machine's time."""
    seen = []
    real = throughput.first_step

    def caches():
        return tuple(os.environ.get(name) for name in CACHES)

    def noted(step, **options):
        seen.append(caches())
        return real(step, **options)

    monkeypatch.setattr(throughput, "first_step", noted)
    before = caches()
    for mode in ("compile", "compile", "eager"):
        measured(quick(mode=mode))
    assert caches() == before
    first, _, second, *_ = seen  # a throw-away network, and the cell's
    assert seen[:4] == [first] * 2 + [second] * 2
    assert len({first, second, before}) == 3
    assert set(seen[4:]) == {before}


@pytest.mark.usefixtures("eager_backend")
@pytest.mark.parametrize(("mode", "extra"), [("eager", [("highway", 1)]), ("compile", [])])
def test_the_first_cell_does_not_pay_for_the_process(monkeypatch, mode, extra):
    """The first step of a process takes longer, or of a block in it; a network of one layer takes that time."""
    stepped = []

    def first_step(step, **_):
        step()
        work = step.__self__.cell
        stepped.append((work.block, work.depth))
        first = [block for block, _ in stepped].count(work.block) == 1
        return 9.0 if len(stepped) == 1 or (mode == "eager" and first) else 3.0

    monkeypatch.setattr(throughput, "first_step", first_step)
    monkeypatch.setattr(throughput, "_set_up", set())
    cells = [quick(block, mode=mode, seed=seed) for seed, block in enumerate(("plain", "plain", "highway"))]
    result = [by_name(outcome.measurements)["first_step"].value for outcome in TASK.measure(cells)]
    assert result == [3.0, 3.0, 3.0]
    assert stepped == [("plain", 1), ("plain", 2), ("plain", 2), *extra, ("highway", 2)]


def test_a_cell_that_only_claims_to_be_compiled_is_an_error(monkeypatch):
    def uncompiled(network, **options):
        return network

    monkeypatch.setattr(torch, "compile", uncompiled)
    with pytest.raises(NotCompiled):
        measured(quick(mode="compile"))


def test_the_measured_floor_is_a_floor(monkeypatch):
    """A step takes longer than its floor, and both figures say the same."""
    monkeypatch.undo()  # so the roofline is the real one
    result = measured(quick("plain", phase="forward"))
    assert result["slowdown"].value > 1
    assert result["roofline_share"].value == pytest.approx(1 / result["slowdown"].value)
    assert np.isfinite(result["flop_rate"].value)


def test_processes_are_added_until_the_ratio_is_precise(monkeypatch):
    """The second block's ratio is 2, but in the first process."""
    plain, other = quick("plain"), quick()

    def turns(number):
        seconds = {plain: [1.0] * 3, other: [2.0 if number else 2.05] * 3, _timing.YARDSTICK: [1.0] * 3}
        return Turns(seconds, seconds, 1, 0, False, False)

    monkeypatch.setattr(_timing, "_take_turns", lambda works, budget, number: turns(number))
    monkeypatch.setattr(_timing, "call_in", lambda number, *_: turns(number))
    works = {plain: None, other: None}
    options = {"processes": 3, "most_seconds": 60.0}
    times = _timing.time_group(works, Budget(), precision=0.03, **options)
    assert (times.processes, times.precise(0.03)) == (4, True)
    assert _timing.time_group(works, Budget(), precision=0.5, **options).processes == 3
