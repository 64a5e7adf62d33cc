"""The roofline: its arithmetic by hand on a fake clock, and sanity on this machine."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.measure import roofline
from highway_bench.measure.clock import Step
from highway_bench.measure.flops import count_flops
from highway_bench.measure.precision import ieee_float32
from highway_bench.measure.roofline import Roofline, copy_rate, matmul_rate, measure_roofline

HAND = Roofline("cpu", "float32", 1, matmul_rate=100.0, conv_rate=50.0, copy_rate=10.0)
CPU = torch.device("cpu")
SIDES = (256, 512, 1024, 2048)


def test_the_floor_is_the_slower_of_computing_and_moving():
    assert [HAND.floor(*amounts) for amounts in ((200, 10), (200, 50), (0,))] == [2.0, 5.0, 0.0]
    assert replace(HAND, conv_rate=200.0).floor(200) == 1.0  # by the faster of products and convolutions


@pytest.mark.parametrize(
    "call",
    [lambda: HAND.floor(-1.0), lambda: HAND.floor(math.nan), lambda: measure_roofline("cpu", "int32"),
     lambda: measure_roofline("cpu", "no_such"), lambda: measure_roofline("cpu", threads=0)],
)  # fmt: skip
def test_bad_input(call):
    with pytest.raises(BadInput):
        call()


class Machine:
    """A device whose products take the seconds that are given a side, and its clock. ``called`` has every call."""

    def __init__(self, seconds: Mapping[int, float], first: float = 0.0) -> None:
        self.seconds, self.first = seconds, first
        self.now = 0.0
        self.called = []

    def clock(self) -> float:
        return self.now

    def products(self, device: torch.device, dtype: torch.dtype) -> Iterator[tuple[float, Step]]:
        for side in self.seconds:
            yield 2.0 * side**3, functools.partial(self.multiply, side)

    def multiply(self, side: int) -> None:
        self.now += self.seconds[side] if side in self.called else self.first
        self.called.append(side)

    def rate(self, monkeypatch: pytest.MonkeyPatch) -> float:
        monkeypatch.setattr(roofline, "_products", self.products)
        return matmul_rate(CPU, torch.float32, self.clock)


BILLION = {side: 2.0 * side**3 / 1e9 for side in SIDES}


@pytest.mark.parametrize(
    ("machine", "rate", "largest"),
    [
        (Machine(BILLION, first=10.0), 1e9, 1024),  # the first call of a size is not charged
        (Machine({256: 1.0, 512: 20.0, 1024: 30.0, 2048: 30.0}), 2 * 2048**3 / 30, 2048),  # slower at 512
        (Machine({**BILLION, 1024: BILLION[1024] / 1.04}), 1.04e9, 1024),  # 4 % faster than the side before
    ],
)
def test_a_plateau_from_side_1024_on_ends_the_search(monkeypatch, machine, rate, largest):
    assert machine.rate(monkeypatch) == pytest.approx(rate)
    assert max(machine.called) == largest


def test_a_rate_is_that_of_the_best_call(monkeypatch):
    machine = Machine(dict.fromkeys(SIDES, 0.01))
    disturbances = itertools.cycle([0.04, 0.0])
    multiply = machine.multiply

    def disturbed(side):
        multiply(side)
        machine.now += next(disturbances)

    monkeypatch.setattr(machine, "multiply", disturbed)
    assert machine.rate(monkeypatch) == pytest.approx(2 * 2048**3 / 0.01)


def test_a_convolutions_flop_are_those_that_are_counted():
    flops, work = next(roofline._convolutions(CPU, torch.float32))
    assert count_flops(work) == flops


def test_copy_rate_counts_bytes_read_and_written(monkeypatch):
    monkeypatch.setattr(roofline, "_beyond_cache", lambda device: 16 * 4096)
    readings = itertools.count(step=0.5)  # 0.5 s between two readings
    assert copy_rate(CPU, lambda: next(readings)) == 2 * 4096 / 0.5


def test_several_threads_are_no_slower_than_one(monkeypatch):
    """Where other processes make threads wait for each other, one thread's rate stands."""
    monkeypatch.setattr(roofline, "_measured", {})
    for name in ("matmul_rate", "conv_rate", "copy_rate"):
        monkeypatch.setattr(roofline, name, lambda *_: 5.0 if torch.get_num_threads() == 1 else 0.1)
    got = measure_roofline("cpu", "float32", 2)
    assert (got.matmul_rate, got.conv_rate, got.copy_rate, got.threads) == (5.0, 5.0, 5.0, 2)


def test_measured_once_a_process_and_threads_put_back():
    before = torch.get_num_threads()
    got = measure_roofline("cpu", "float32", 1)
    assert min(got.matmul_rate, got.conv_rate, got.copy_rate) > 1e8  # any machine since the 1990s
    assert measure_roofline(CPU, "float32", 1) is got
    assert torch.get_num_threads() == before
    assert (got.device, got.dtype, got.threads) == ("cpu", "float32", 1)


def test_tf32_has_rates_of_its_own_which_are_measured_in_tf32(monkeypatch):
    monkeypatch.setattr(roofline, "_measured", {})
    ieee_float32()
    measured = []

    def rate(_, dtype, clock):
        measured.append((dtype, torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32))
        return 1.0

    for name in ("matmul_rate", "conv_rate"):
        monkeypatch.setattr(roofline, name, rate)
    monkeypatch.setattr(roofline, "copy_rate", lambda *_: 1.0)
    assert [measure_roofline("cpu", dtype, 1).dtype for dtype in ("tf32", "float32")] == ["tf32", "float32"]
    assert measured == [(torch.float32, "high", True)] * 2 + [(torch.float32, "highest", False)] * 2
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == ("highest", False)


def test_convolutions_have_inputs_and_weights_in_one_layout(monkeypatch):
    """Otherwise a GPU copies the weights at each call, which would be timed."""
    given = []
    monkeypatch.setattr(roofline.F, "conv2d", lambda x, weight, **_: given.extend((x, weight)))
    _, work = next(roofline._convolutions(CPU, torch.float32))
    work()
    assert [one.is_contiguous(memory_format=torch.channels_last) for one in given] == [True, True]


@pytest.mark.gpu
def test_a_gpus_rates_by_precision():
    rates = {dtype: measure_roofline("cuda", dtype) for dtype in ("float32", "tf32", "bfloat16")}
    assert all(min(one.matmul_rate, one.conv_rate, one.copy_rate) > 0 for one in rates.values())
    if torch.cuda.get_device_capability() >= (8, 0):
        assert rates["tf32"].matmul_rate > rates["float32"].matmul_rate
