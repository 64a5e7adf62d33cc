"""Roofline: the least time that this device could need, from what it is measured to do.

No kernel multiplies matrices faster than the best large square product, and none moves data faster than the best
copy of a buffer that no cache holds. So work of F FLOP that must move B bytes takes at least
max(F / matmul_rate, B / copy_bandwidth) seconds. Both rates are measured here, in this process, with its threads:
never looked up. (Data that stay in a cache can move faster than the copy; a share above 1 then says so.)
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from highway_bench.errors import BadInput
from highway_bench.measure.clock import Clock, Step, first_step, synchronise

SECONDS = 0.12  # aimed at for each of the two rates
_MIB = 2**20


@dataclass(frozen=True)
class Roofline:
    """A device's measured rates.

    ``matmul_rate`` in FLOP/s (a multiply-add is two), ``copy_bandwidth`` in B/s with the bytes read and the bytes
    written both counted.
    """

    device: str
    dtype: str
    threads: int
    matmul_rate: float
    copy_bandwidth: float

    def floor(self, flops: float, bytes_moved: float = 0.0) -> float:
        """Least seconds for ``flops`` FLOP that move ``bytes_moved`` B to or from memory."""
        if not (flops >= 0 and bytes_moved >= 0):
            raise BadInput(f"a floor needs FLOP ≥ 0 and bytes ≥ 0, not {flops} and {bytes_moved}")
        return max(flops / self.matmul_rate, bytes_moved / self.copy_bandwidth)

    def __str__(self) -> str:
        return (f"{self.matmul_rate / 1e9:.3g} GFLOP/s, {self.copy_bandwidth / 1e9:.3g} GB/s "
                f"({self.device}, {self.dtype}, threads {self.threads})")


def measure_roofline(device: str | torch.device = "cpu", dtype: str | torch.dtype = "float32",
                     threads: int | None = None) -> Roofline:
    """The roofline of ``device`` for matrices of ``dtype``, with ``threads`` threads (as torch is set, by default).

    Measured once a process for each combination, in about a quarter of a second, and kept. Raises ``BadInput`` where
    the dtype is not a floating one.
    """
    kind = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not (isinstance(kind, torch.dtype) and kind.is_floating_point):
        raise BadInput(f"a roofline needs a floating dtype, not {dtype}")
    if threads is not None and threads < 1:
        raise BadInput(f"threads must be at least 1, not {threads}")
    place = torch.device(device)
    count = threads or torch.get_num_threads()
    # The precision setting lets a GPU round float32 products to TF32, at several times the rate.
    key = (str(place), kind, count, torch.get_float32_matmul_precision())
    if key not in _measured:
        with _threads(count), torch.inference_mode():
            _measured[key] = Roofline(str(place), str(kind).removeprefix("torch."), count,
                                      matmul_rate(place, kind, SECONDS), copy_bandwidth(place, SECONDS))
    return _measured[key]


def matmul_rate(device: torch.device, dtype: torch.dtype, seconds: float, clock: Clock = time.perf_counter) -> float:
    """Best FLOP/s over square products of sides 128, 256, 512, …, as far as about ``seconds`` allow."""
    best, side, left = 0.0, 128, seconds
    while True:
        a = torch.randn(side, side, device=device).to(dtype)
        b = torch.randn(side, side, device=device).to(dtype)
        out = torch.empty_like(a)
        times = _timed(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), device, clock)  # type: ignore[misc]
        best = max(best, 2 * side**3 / min(times))
        left -= sum(times)
        side *= 2
        # Twice the side is eight times the work, in as many calls again.
        if left < 8 * min(times) * len(times) or side > 16384:
            return best


def copy_bandwidth(device: torch.device, seconds: float, clock: Clock = time.perf_counter) -> float:
    """Best B/s, read and written, over copies of a buffer several times the last cache's size."""
    source = torch.ones(_beyond_cache(device) // 4, dtype=torch.float32, device=device)
    target = torch.zeros_like(source)  # written once already: no page is touched first within the timed copies
    best, left = math.inf, seconds
    while left > 0:
        times = _timed(lambda: target.copy_(source), device, clock)
        best = min(best, *times)
        left -= sum(times)
    return 2 * source.nbytes / best


_measured: dict[tuple[str, torch.dtype, int, str], Roofline] = {}


def _timed(work: Step, device: torch.device, clock: Clock) -> list[float]:
    """Seconds of one call and three more; the first may hold set-up, but it costs time and so counts as spent."""
    def step() -> None:
        work()
        synchronise(device)

    synchronise(device)
    return [max(first_step(step, clock=clock), 1e-9) for _ in range(4)]


def _beyond_cache(device: torch.device) -> int:
    """Bytes of a buffer that the last-level cache cannot hold: four times its size, within bounds."""
    if device.type == "cuda":
        return min(max(4 * torch.cuda.get_device_properties(device).L2_cache_size, 256 * _MIB), 1024 * _MIB)
    # Not every libc knows the name, and some answer 0.
    level3 = os.sysconf("SC_LEVEL3_CACHE_SIZE") if "SC_LEVEL3_CACHE_SIZE" in os.sysconf_names else 0
    return min(max(4 * level3, 64 * _MIB), 256 * _MIB)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
