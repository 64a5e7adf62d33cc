"""The roofline: its arithmetic by hand on a fake clock, and sanity on this machine."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.measure import roofline
from highway_bench.measure.roofline import Roofline, copy_bandwidth, matmul_rate, measure_roofline

HAND = Roofline("cpu", "float32", 1, matmul_rate=100.0, copy_bandwidth=10.0)
CPU = torch.device("cpu")


def test_the_floor_is_the_slower_of_computing_and_moving() -> None:
    assert HAND.floor(200, 10) == 2.0
    assert HAND.floor(200, 50) == 5.0
    assert HAND.floor(0) == 0.0


def test_a_negative_or_unknown_amount_is_bad_input() -> None:
    for flops in (-1.0, math.nan):
        with pytest.raises(BadInput, match="floor"):
            HAND.floor(flops)


def ticking(seconds: float):  # type: ignore[no-untyped-def]
    """A clock that stands ``seconds`` further at every second reading, so that each call lasts just that."""
    readings = itertools.count()
    return lambda: seconds * ((next(readings) + 1) // 2)


def test_matmul_rate_counts_two_flop_a_multiply_add() -> None:
    # Four calls of 1 s leave nothing of 1 s, so only the smallest side is tried.
    assert matmul_rate(CPU, torch.float32, 1.0, ticking(1.0)) == 2 * 128**3


def test_matmul_rate_takes_the_best_side() -> None:
    # 0.25 s a call: 1 s a side. After side 128, 9 s are left and the next is expected to take 8; after 256, 8 are.
    assert matmul_rate(CPU, torch.float32, 10.0, ticking(0.25)) == 2 * 512**3 / 0.25


def test_copy_bandwidth_counts_bytes_read_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "_beyond_cache", lambda device: 4096)
    assert copy_bandwidth(CPU, 1.0, ticking(0.5)) == 2 * 4096 / 0.5


def test_measured_once_a_process_and_threads_put_back() -> None:
    before = torch.get_num_threads()
    got = measure_roofline("cpu", "float32", 1)
    assert min(got.matmul_rate, got.copy_bandwidth) > 1e8  # any machine since the 1990s
    assert measure_roofline(CPU, torch.float32, 1) is got
    assert torch.get_num_threads() == before
    assert (got.device, got.dtype, got.threads) == ("cpu", "float32", 1)


@pytest.mark.parametrize("dtype", ["int32", "no_such", torch.int8])
def test_a_dtype_that_is_not_floating_is_bad_input(dtype: str | torch.dtype) -> None:
    with pytest.raises(BadInput, match="floating"):
        measure_roofline("cpu", dtype)


def test_threads_must_be_positive() -> None:
    with pytest.raises(BadInput, match="threads"):
        measure_roofline(threads=0)
