"""The clock on fakes: what is inside the timed interval, how a budget ends, and the order of interleaved rounds."""

from __future__ import annotations

import math

import pytest

from highway_bench.errors import BadInput
from highway_bench.measure.clock import Budget, Samples, cache_eviction, first_step, sample, sample_interleaved


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


QUICK = Budget(min_samples=3, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=1000)


def test_the_steps_synchronisation_is_timed_and_restore_is_not() -> None:
    device = FakeDevice()

    def restore() -> None:
        device.launch(100.0)
        device.synchronise()

    got = sample(device.step(seconds=2.0), QUICK, restore=restore, clock=device.clock)
    assert got.seconds == [2.0, 2.0, 2.0]
    assert device.now == (2 + 3) * 102.0  # restore ran after each of five calls all the same


def test_a_step_that_does_not_synchronise_would_look_free() -> None:
    device = FakeDevice()
    got = sample(lambda: device.launch(2.0), QUICK, clock=device.clock)
    assert got.seconds == [0.0, 0.0, 0.0]  # so the contract that a step synchronises is what makes the figure right


def test_sampling_needs_both_the_least_count_and_the_least_time() -> None:
    device = FakeDevice()
    by_count = Budget(min_samples=7, min_seconds=1.0, warmup_samples=0, warmup_seconds=0)
    by_time = Budget(min_samples=2, min_seconds=4.5, warmup_samples=0, warmup_seconds=2.5)
    assert len(sample(device.step(), by_count, clock=device.clock)) == 7
    got = sample(device.step(), by_time, clock=device.clock)
    assert (len(got), got.warmups, got.cut_short) == (5, 3, False)


def test_max_seconds_bounds_warm_up_sampling_and_restoring_together() -> None:
    device = FakeDevice()
    budget = Budget(min_samples=100, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=10)
    got = sample(device.step(), budget, restore=device.step("restore"), clock=device.clock)
    assert (got.warmups, len(got), got.cut_short) == (2, 3, True)
    assert device.now == 10


def test_one_sample_is_taken_however_slow_the_step() -> None:
    device = FakeDevice()
    got = sample(device.step(seconds=50.0), Budget(max_seconds=10), clock=device.clock)
    assert (got.seconds, got.warmups, got.cut_short) == ([50.0], 1, True)


def test_interleaved_rounds_give_every_step_every_place() -> None:
    device = FakeDevice()
    steps = {"a": device.step("a", 1.0), "b": device.step("b", 2.0), "c": device.step("c", 4.0)}
    budget = Budget(min_samples=6, min_seconds=0, warmup_samples=0, warmup_seconds=0, max_seconds=100)
    got = sample_interleaved(steps, budget, clock=device.clock)
    assert "".join(device.log) == "abcbcacabacbcbabac"
    assert got == {"a": [1.0] * 6, "b": [2.0] * 6, "c": [4.0] * 6}


def test_sample_i_of_every_key_belongs_to_round_i() -> None:
    device = FakeDevice()
    calls = {"a": 0, "b": 0}

    def counted(name: str):  # type: ignore[no-untyped-def]
        def work() -> None:
            calls[name] += 1
            device.now += calls[name]

        return work

    budget = Budget(min_samples=5, min_seconds=0, warmup_samples=2, warmup_seconds=0, max_seconds=1000)
    got = sample_interleaved({"a": counted("a"), "b": counted("b")}, budget, clock=device.clock)
    assert got == {"a": [3.0, 4.0, 5.0, 6.0, 7.0], "b": [3.0, 4.0, 5.0, 6.0, 7.0]}


def test_the_interleaved_budget_counts_rounds() -> None:
    device = FakeDevice()
    budget = Budget(min_samples=1, min_seconds=10, warmup_samples=0, warmup_seconds=0)
    steps = {"a": device.step("a", 1.0), "b": device.step("b", 2.0)}
    got = sample_interleaved(steps, budget, restore={"b": device.step("undo b", 0.5)}, clock=device.clock)
    assert len(got["a"]) == len(got["b"]) == 4  # 3 s a round; the fourth passes 10 s
    assert device.log.count("undo b") == 4


def test_first_step_is_one_call() -> None:
    device = FakeDevice()
    assert first_step(device.step(seconds=9.0), restore=device.step("undo", 1.0), clock=device.clock) == 9.0
    assert device.log == ["a", "undo"]


def test_an_exception_in_a_step_is_not_swallowed() -> None:
    def broken() -> None:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        sample(broken, QUICK)


def test_quantiles_of_the_samples() -> None:
    got = Samples([float(value) for value in range(11)], 0, False)
    assert (got.median, got.p10, got.p90) == (5.0, 1.0, 9.0)
    assert str(got) == "5 s (p10 1, p90 9, n = 11)"


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
        sample_interleaved({}, QUICK)
    with pytest.raises(BadInput, match="not timed: \\['b'\\]"):
        sample_interleaved({"a": lambda: None}, QUICK, restore={"b": lambda: None})


def test_evicting_a_cpu_cache_does_nothing() -> None:
    cache_eviction("cpu")()
