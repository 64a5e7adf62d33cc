"""The clock on fakes: what is inside the timed interval, how a budget ends, order, and which rounds are left out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

from highway_bench.errors import BadInput
from highway_bench.measure import clock
from highway_bench.measure.clock import Budget, Stopwatch, first_step, take_turns
from highway_bench.measure.processes import process_delay


class FakeDevice:
    """A device with a clock of its own and a log of its steps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log = []

    def clock(self) -> float:
        return self.now

    def step(self, name: str = "a", seconds: float = 1.0) -> Callable[[], None]:
        def work():
            self.log.append(name)
            self.now += seconds

        return work

    @property
    def watch(self) -> Stopwatch:
        return Stopwatch(self.clock, wall=self.clock)


def budget(rounds=1, *, seconds=0, warm=0, warm_seconds=0, most=1000):
    return Budget(
        min_samples=rounds, min_seconds=seconds, warmup_samples=warm, warmup_seconds=warm_seconds, max_seconds=most
    )


def turns_of(device, rounds, step=None, **options):
    """Rounds of one step, by default of one second."""
    return take_turns({"a": step or device.step()}, rounds, **{"watch": device.watch} | options)


def test_a_step_is_timed_and_restore_is_not():
    device = FakeDevice()
    turns = turns_of(device, budget(3, warm=2), device.step(seconds=2.0), restore={"a": device.step("undo", 100.0)})
    assert turns.seconds == turns.wall == {"a": [2.0, 2.0, 2.0]}
    assert device.now == (2 + 3) * 102.0  # restore ran after each of five calls all the same


@pytest.mark.parametrize(
    ("rounds", "samples", "warmups", "cut_short"),
    [
        (budget(7, seconds=1), 7, 0, False),
        (budget(2, seconds=4.5, warm_seconds=2.5), 5, 3, False),
        (budget(100, warm=2, most=10), 8, 2, True),
        (budget(100, warm=3, most=1), 1, 1, True),  # one sample is taken however slow the step
    ],
)
def test_sampling_needs_the_least_count_and_time_and_ends_with_the_most(rounds, samples, warmups, cut_short):
    turns = turns_of(FakeDevice(), rounds)
    assert (turns.seconds, turns.warmups, turns.cut_short) == ({"a": [1.0] * samples}, warmups, cut_short)


def test_the_most_seconds_include_restoring():
    device = FakeDevice()
    turns = turns_of(device, budget(100, warm=2, most=10), restore={"a": device.step("restore")})
    assert (turns.warmups, len(turns.seconds["a"]), turns.cut_short, device.now) == (2, 3, True, 10)


def test_the_budget_counts_rounds():
    device = FakeDevice()
    steps = {"a": device.step("a", 1.0), "b": device.step("b", 2.0)}
    turns = take_turns(steps, budget(seconds=10), restore={"b": device.step("undo b", 0.5)}, watch=device.watch)
    assert len(turns.seconds["a"]) == len(turns.seconds["b"]) == 4  # 3 s a round; the fourth passes 10 s
    assert device.log.count("undo b") == 4


def test_rounds_have_random_orders_that_a_seed_repeats():
    def orders(seed):
        device = FakeDevice()
        steps = {name: device.step(name) for name in "abc"}
        turns = take_turns(steps, budget(60), watch=device.watch, seed=seed)
        assert turns.seconds == {name: [1.0] * 60 for name in "abc"}
        return ["".join(device.log[i : i + 3]) for i in range(0, len(device.log), 3)]

    first = orders(0)
    assert all(sorted(one) == ["a", "b", "c"] for one in first)
    assert len(set(first)) == 6  # every order
    assert len({first[i : i + 6].count("abc") for i in range(0, 60, 6)}) > 1  # without a period
    assert orders(0) == first != orders(1)


def test_sample_i_of_every_key_belongs_to_round_i():
    device, calls = FakeDevice(), {"a": itertools.count(1), "b": itertools.count(1)}
    steps = {name: lambda name=name: setattr(device, "now", device.now + next(calls[name])) for name in calls}
    turns = take_turns(steps, budget(5, warm=2), watch=device.watch)
    assert turns.seconds == {"a": [3.0, 4.0, 5.0, 6.0, 7.0], "b": [3.0, 4.0, 5.0, 6.0, 7.0]}


def test_the_wait_for_a_core_is_in_the_wall_time_alone():
    device = FakeDevice()
    watch = Stopwatch(lambda: device.now / 2, wall=device.clock)  # the thread waits for half of the time
    turns = turns_of(device, budget(3), device.step(seconds=4.0), watch=watch)
    assert (turns.seconds, turns.wall, turns.disturbed) == ({"a": [2.0] * 3}, {"a": [4.0] * 3}, 0)


def test_disturbed_rounds_are_left_out_for_every_step_and_counted():
    device = FakeDevice()
    delay, rounds = [0.0], itertools.count()

    def disturbed_every_third():
        device.now += 1.0
        if next(rounds) % 3 == 2:
            delay[0] += 0.5
            device.now += 8.0

    watch = Stopwatch(device.clock, lambda: delay[0], wall=device.clock)
    turns = take_turns({"a": disturbed_every_third, "b": device.step("b", 2.0)}, budget(4), watch=watch)
    assert (turns.seconds, turns.disturbed) == ({"a": [1.0] * 4, "b": [2.0] * 4}, 1)
    assert not turns.cut_short


@pytest.mark.parametrize(("rounds", "taken"), [(budget(4, most=10), 10), (budget(4, seconds=6), 18)])
def test_where_every_round_is_disturbed_none_is_left_out_and_it_ends(rounds, taken):
    """After the most seconds, or three times six seconds."""
    device = FakeDevice()
    turns = turns_of(device, rounds, watch=Stopwatch(device.clock, device.clock, wall=device.clock))
    assert (turns.seconds, turns.disturbed, turns.cut_short) == ({"a": [1.0] * taken}, taken, True)


def test_only_one_thread_on_a_cpu_has_a_clock_of_its_own():
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


def gpu_turns(gpu, log=None):
    """Rounds of two steps on a GPU, the first of which can be launched without waiting."""
    device, noted = FakeDevice(), [] if log is None else log
    return take_turns(
        {"a": device.step("a", 2.0), "b": device.step("b", 3.0)},
        budget(3),
        restore={"a": lambda: noted.append("restore a")},
        launch={"a": lambda: noted.append("launch a")},
        watch=Stopwatch(device.clock, wall=device.clock, gpu=gpu),
    )


def test_a_gpu_has_a_time_of_its_own_and_a_clock_rate_in_every_round():
    log = []
    turns = gpu_turns(FakeGpu(), log)
    assert turns.seconds == {"a": [2.0] * 3, "b": [3.0] * 3}
    assert turns.on_gpu == {"a": [1.0] * 3}
    assert turns.clock_rate == [1e9 + 1, 1e9 + 2, 1e9 + 3]
    assert log == ["restore a", "launch a", "restore a"] * 3
    assert (turns.capped, turns.caps, turns.disturbed) == (0, frozenset(), 0)


def test_a_clock_that_earlier_work_capped_recovers_before_the_first_round(monkeypatch):
    gpu = FakeGpu(0)
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            gpu.capped = ()

    monkeypatch.setattr(clock.time, "sleep", sleep)
    turns = gpu_turns(gpu)
    assert len(pauses) == 3
    assert (turns.capped, turns.clock_rate[0]) == (0, 1e9 + 1)


def test_rounds_with_a_capped_clock_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr(clock, "MOST_COOLING", 0.0)
    turns = gpu_turns(FakeGpu(0, 2))
    assert turns.clock_rate == [1e9 + 2, 1e9 + 4, 1e9 + 5]
    assert (turns.capped, turns.disturbed, turns.all_disturbed, turns.caps) == (2, 2, False, {"heat"})
    always = gpu_turns(FakeGpu(*range(100)))
    assert (always.capped, always.all_disturbed, always.cut_short) == (9, True, True)
    assert len(always.clock_rate) == len(always.seconds["a"]) == len(always.on_gpu["a"]) == 9


def test_first_step_is_one_call():
    device = FakeDevice()
    assert first_step(device.step(seconds=9.0), restore=device.step("undo", 1.0), clock=device.clock) == 9.0
    assert device.log == ["a", "undo"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: Budget(min_samples=0),
        lambda: Budget(warmup_samples=-1),
        lambda: Budget(min_seconds=-1.0),
        lambda: Budget(max_seconds=math.inf),
        lambda: Budget(warmup_seconds=math.nan),
        lambda: take_turns({}, Budget()),
        lambda: take_turns({"a": lambda: None}, Budget(), restore={"b": lambda: None}),
    ],
)
def test_impossible_budgets_and_steps_are_bad_input(call):
    with pytest.raises(BadInput):
        call()
