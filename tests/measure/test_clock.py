"""The clock on fakes: what is inside the timed interval, how a budget ends, order, and which rounds are left out."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from highway_bench.errors import BadInput
from highway_bench.measure import clock
from highway_bench.measure.clock import Budget, Stopwatch, Turns, first_step, take_turns
from highway_bench.measure.run_delay import process_delay


class FakeDevice:
    """A device with a clock of its own: work is only queued when launched, and takes time when synchronised."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue: list[float] = []
        self.log: list[str] = []

    def clock(self) -> float:
        return self.now

    def launch(self, seconds: float) -> None:
        self.queue.append(seconds)

    def synchronise(self) -> None:
        self.now += math.fsum(self.queue)
        self.queue.clear()

    def step(self, name: str = "a", seconds: float = 1.0):  # type: ignore[no-untyped-def]
        def work() -> None:
            self.log.append(name)
            self.launch(seconds)
            self.synchronise()

        return work

    @property
    def watch(self) -> Stopwatch:
        return Stopwatch(self.clock, wall=self.clock)


QUICK = Budget(min_samples=3, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=1000)


def turns_of(device: FakeDevice, budget: Budget, step: Any = None, **options: Any) -> Turns[str]:
    """Rounds of one step, by default of one second."""
    return take_turns({"a": step or device.step()}, budget, watch=device.watch, **options)


def test_the_steps_synchronisation_is_timed_and_restore_is_not() -> None:
    device = FakeDevice()

    def restore() -> None:
        device.launch(100.0)
        device.synchronise()

    turns = turns_of(device, QUICK, device.step(seconds=2.0), restore={"a": restore})
    assert turns.seconds == turns.wall == {"a": [2.0, 2.0, 2.0]}
    assert device.now == (2 + 3) * 102.0  # restore ran after each of five calls all the same


def test_a_step_that_does_not_synchronise_would_look_free() -> None:
    device = FakeDevice()
    turns = turns_of(device, QUICK, lambda: device.launch(2.0))
    assert turns.seconds == {"a": [0.0, 0.0, 0.0]}  # so the contract that a step synchronises makes the figure right


def test_sampling_needs_both_the_least_count_and_the_least_time() -> None:
    device = FakeDevice()
    by_count = Budget(min_samples=7, min_seconds=1.0, warmup_samples=0, warmup_seconds=0)
    by_time = Budget(min_samples=2, min_seconds=4.5, warmup_samples=0, warmup_seconds=2.5)
    assert len(turns_of(device, by_count).seconds["a"]) == 7
    turns = turns_of(device, by_time)
    assert (len(turns.seconds["a"]), turns.warmups, turns.cut_short) == (5, 3, False)


def test_max_seconds_bounds_warm_up_sampling_and_restoring_together() -> None:
    device = FakeDevice()
    budget = Budget(min_samples=100, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=10)
    turns = turns_of(device, budget, restore={"a": device.step("restore")})
    assert (turns.warmups, len(turns.seconds["a"]), turns.cut_short) == (2, 3, True)
    assert device.now == 10


def test_one_sample_is_taken_however_slow_the_step() -> None:
    device = FakeDevice()
    turns = turns_of(device, Budget(max_seconds=10), device.step(seconds=50.0))
    assert (turns.seconds, turns.warmups, turns.cut_short) == ({"a": [50.0]}, 1, True)


def test_rounds_have_random_orders_that_a_seed_repeats() -> None:
    def orders(seed: int) -> list[str]:
        device = FakeDevice()
        steps = {name: device.step(name) for name in "abc"}
        budget = Budget(min_samples=60, min_seconds=0, warmup_samples=0, warmup_seconds=0, max_seconds=1000)
        turns = take_turns(steps, budget, watch=device.watch, seed=seed)
        assert turns.seconds == {name: [1.0] * 60 for name in "abc"}
        return ["".join(device.log[i : i + 3]) for i in range(0, len(device.log), 3)]

    first = orders(0)
    assert all(sorted(one) == ["a", "b", "c"] for one in first)
    assert len(set(first)) == 6  # every order
    assert len({first[i : i + 6].count("abc") for i in range(0, 60, 6)}) > 1  # without a period
    assert orders(0) == first != orders(1)


def test_sample_i_of_every_key_belongs_to_round_i() -> None:
    device = FakeDevice()
    calls = {"a": 0, "b": 0}

    def counted(name: str):  # type: ignore[no-untyped-def]
        def work() -> None:
            calls[name] += 1
            device.now += calls[name]

        return work

    budget = Budget(min_samples=5, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=1000)
    turns = take_turns({"a": counted("a"), "b": counted("b")}, budget, watch=device.watch)
    assert turns.seconds == {"a": [3.0, 4.0, 5.0, 6.0, 7.0], "b": [3.0, 4.0, 5.0, 6.0, 7.0]}


def test_the_budget_counts_rounds() -> None:
    device = FakeDevice()
    budget = Budget(min_samples=1, min_seconds=10, warmup_samples=0, warmup_seconds=0)
    steps = {"a": device.step("a", 1.0), "b": device.step("b", 2.0)}
    turns = take_turns(steps, budget, restore={"b": device.step("undo b", 0.5)}, watch=device.watch)
    assert len(turns.seconds["a"]) == len(turns.seconds["b"]) == 4  # 3 s a round; the fourth passes 10 s
    assert device.log.count("undo b") == 4


def test_the_wait_for_a_core_is_in_the_wall_time_alone() -> None:
    device = FakeDevice()
    watch = Stopwatch(lambda: device.now / 2, wall=device.clock)  # the thread waits for half of the time
    turns = take_turns({"a": device.step(seconds=4.0)}, QUICK, watch=watch)
    assert (turns.seconds, turns.wall, turns.disturbed) == ({"a": [2.0] * 3}, {"a": [4.0] * 3}, 0)


def test_disturbed_rounds_are_left_out_for_every_step_and_counted() -> None:
    device = FakeDevice()
    delay, rounds = [0.0], itertools.count()

    def disturbed_every_third() -> None:
        device.now += 1.0
        if next(rounds) % 3 == 2:
            delay[0] += 0.5
            device.now += 8.0

    budget = Budget(min_samples=4, min_seconds=0, warmup_samples=0, warmup_seconds=0, max_seconds=1000)
    watch = Stopwatch(device.clock, lambda: delay[0], wall=device.clock)
    turns = take_turns({"a": disturbed_every_third, "b": device.step("b", 2.0)}, budget, watch=watch)
    assert (turns.seconds, turns.disturbed) == ({"a": [1.0] * 4, "b": [2.0] * 4}, 1)
    assert not turns.cut_short


def test_where_every_round_is_disturbed_none_is_left_out() -> None:
    device = FakeDevice()
    watch = Stopwatch(device.clock, device.clock, wall=device.clock)
    budget = Budget(min_samples=4, min_seconds=0, warmup_samples=0, warmup_seconds=0, max_seconds=10)
    turns = take_turns({"a": device.step()}, budget, watch=watch)
    assert (turns.seconds, turns.disturbed, turns.cut_short) == ({"a": [1.0] * 10}, 10, True)


def test_a_machine_that_disturbs_every_round_does_not_hold_the_measurement_up() -> None:
    device = FakeDevice()
    watch = Stopwatch(device.clock, device.clock, wall=device.clock)
    budget = Budget(min_samples=4, min_seconds=6, warmup_samples=0, warmup_seconds=0, max_seconds=1000)
    turns = take_turns({"a": device.step()}, budget, watch=watch)
    assert (len(turns.seconds["a"]), turns.disturbed, turns.cut_short) == (18, 18, True)  # three times six seconds


def test_only_one_thread_on_a_cpu_has_a_clock_of_its_own() -> None:
    assert Stopwatch.of("cpu", 1).delay is None
    assert Stopwatch.of("cpu", 2).delay is Stopwatch.of("cuda", 1).delay is process_delay


class FakeGpu:
    """A GPU whose steps take half of their wall time, and whose clock is capped after the rounds of these numbers."""

    unread = None

    def __init__(self, *capped: int) -> None:
        self.capped, self.round = capped, 0

    def caps(self) -> frozenset[str]:
        return frozenset({"heat"} if self.round in self.capped else ())

    def seconds(self, launch: Any, wall: float) -> float:
        launch()
        return wall / 2

    def clock_rate(self) -> float:
        self.round += 1
        return 1e9 + self.round


def gpu_turns(gpu: FakeGpu, log: list[str] | None = None, budget: Budget | None = None) -> Turns[str]:
    """Rounds of two steps on a GPU, the first of which can be launched without waiting."""
    device, noted = FakeDevice(), [] if log is None else log
    watch = Stopwatch(device.clock, wall=device.clock, gpu=gpu)
    return take_turns(
        {"a": device.step("a", 2.0), "b": device.step("b", 3.0)},
        budget or Budget(min_samples=3, min_seconds=0, warmup_samples=0, warmup_seconds=0, max_seconds=1000),
        restore={"a": lambda: noted.append("restore a")},
        launch={"a": lambda: noted.append("launch a")},
        watch=watch,
    )


def test_a_gpu_has_a_time_of_its_own_and_a_clock_rate_in_every_round() -> None:
    log: list[str] = []
    turns = gpu_turns(FakeGpu(), log)
    assert turns.seconds == {"a": [2.0] * 3, "b": [3.0] * 3}
    assert turns.on_gpu == {"a": [1.0] * 3}
    assert turns.clock_rate == [1e9 + 1, 1e9 + 2, 1e9 + 3]
    assert log == ["restore a", "launch a", "restore a"] * 3
    assert (turns.capped, turns.caps, turns.disturbed) == (0, frozenset(), 0)


@pytest.fixture
def no_cooling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "MOST_COOLING", 0.0)


def test_a_clock_that_earlier_work_capped_recovers_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = FakeGpu(0)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            gpu.capped = ()

    monkeypatch.setattr(clock.time, "sleep", sleep)
    turns = gpu_turns(gpu)
    assert len(pauses) == 3
    assert (turns.capped, turns.clock_rate[0]) == (0, 1e9 + 1)


@pytest.mark.usefixtures("no_cooling")
def test_rounds_with_a_capped_clock_are_left_out_and_counted() -> None:
    turns = gpu_turns(FakeGpu(0, 2))
    assert turns.clock_rate == [1e9 + 2, 1e9 + 4, 1e9 + 5]
    assert (turns.capped, turns.disturbed, turns.all_disturbed) == (2, 2, False)
    assert turns.caps == {"heat"}


@pytest.mark.usefixtures("no_cooling")
def test_a_clock_that_is_always_capped_decides_nothing() -> None:
    turns = gpu_turns(FakeGpu(*range(100)))
    assert (turns.capped, turns.all_disturbed, turns.cut_short) == (9, True, True)
    assert len(turns.clock_rate) == len(turns.seconds["a"]) == len(turns.on_gpu["a"]) == 9


def test_first_step_is_one_call() -> None:
    device = FakeDevice()
    assert first_step(device.step(seconds=9.0), restore=device.step("undo", 1.0), clock=device.clock) == 9.0
    assert device.log == ["a", "undo"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_samples": 0},
        {"warmup_samples": -1},
        {"min_seconds": -1.0},
        {"max_seconds": math.inf},
        {"warmup_seconds": math.nan},
    ],
)
def test_impossible_budgets_are_bad_input(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput, match="budget"):
        Budget(**wrong)  # type: ignore[arg-type]


def test_bad_mappings_are_bad_input() -> None:
    with pytest.raises(BadInput, match="no step"):
        take_turns({}, QUICK)
    with pytest.raises(BadInput, match="not timed"):
        take_turns({"a": lambda: None}, QUICK, restore={"b": lambda: None})
