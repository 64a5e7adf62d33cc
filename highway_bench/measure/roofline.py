"""Roofline: the least time that work could take on this device, from measured rates.

The best rate of large products and convolutions bounds how fast a device computes. The best copy of a buffer larger
than any cache bounds how fast it moves data. Work of F FLOP that must move B bytes takes at least max(F /
max(matmul_rate, conv_rate), B / copy_rate) seconds. All rates are measured in this process, with its threads; none come
from tables.

A rate is the best of several calls, since other processes can only lower it; one thread's calls leave out its wait for
a core. Several CPU threads wait for each other at
every call, up to 0.1 s where other processes are busy. So one thread's rates are measured as well, and the higher rates
count. A step can be faster than its floor: cached data can move faster than the copy, and Winograd convolutions take
fewer FLOP than are counted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ..errors import BadInput
from ..os_names import level3_cache
from .clock import Clock, Step
from .device import in_threads, synchronise
from .precision import precision, torch_dtype
from .processes import ThreadClock

SECONDS, LEAST_CALLS = 0.15, 3  # of timed calls a size
PLATEAU = 1.05  # the search stops at a size whose rate is below this multiple of the best before it
LEAST_SIDE = {"cpu": 1024, "cuda": 4096}  # no search stops before the FLOP of a square product of this side
SMALLEST = 256  # side of the first square product
LARGEST = {"cpu": 2048, "cuda": 16384}  # and of the last: on a busy machine the rate keeps rising slightly
CHANNELS, IMAGES, PIXELS = 32, 16, 16  # of the smallest convolution: channels in and out, images, pixels a side
KERNEL = 3
WARM_UP = 0.5  # seconds of untimed products on a GPU, whose clock is slow when it was idle
CALLS = {"cpu": 1, "cuda": 8}  # calls per synchronisation, which takes some 10 µs on a GPU
PARTS = {"cpu": 16, "cuda": 1}  # of the copied buffer, one per call: short calls are seldom interrupted
_MIB = 2**20


@dataclass(frozen=True)
class Roofline:
    """A device's measured rates.

    ``matmul_rate`` and ``conv_rate`` in FLOP/s (a multiply-add is two), ``copy_rate`` in B/s with the bytes read and
    the bytes written both counted.
    """

    device: str
    dtype: str
    threads: int
    matmul_rate: float
    conv_rate: float
    copy_rate: float

    def floor(self, flops: float, bytes_moved: float = 0.0) -> float:
        """Least seconds for ``flops`` FLOP that move ``bytes_moved`` B to or from memory."""
        if not (flops >= 0 and bytes_moved >= 0):
            raise BadInput(f"a floor needs FLOP ≥ 0 and bytes ≥ 0, not {flops} and {bytes_moved}")
        return max(flops / max(self.matmul_rate, self.conv_rate), bytes_moved / self.copy_rate)


def measure_roofline(
    device: str | torch.device = "cpu", dtype: str = "float32", threads: int | None = None
) -> Roofline:
    """The roofline of ``device`` in ``dtype``, a cell's, with ``threads`` threads (as torch is set, by default).

    Each combination is measured once per process, in a few seconds, and cached. Raises ``BadInput`` for a dtype that is
    not floating-point.
    """
    kind = torch_dtype(dtype)
    if threads is not None and threads < 1:
        raise BadInput(f"threads must be at least 1, not {threads}")
    target_device = torch.device(device)
    count = threads or torch.get_num_threads()
    key = (str(target_device), dtype, count)
    if key not in _measured:
        clock = ThreadClock() if target_device.type == "cpu" and count == 1 else time.perf_counter
        with in_threads(count), precision(dtype), torch.inference_mode():
            rates = (
                matmul_rate(target_device, kind, clock),
                conv_rate(target_device, kind, clock),
                copy_rate(target_device, clock),
            )
        if target_device.type == "cpu" and count > 1:
            one = measure_roofline(target_device, dtype, 1)
            rates = max(rates[0], one.matmul_rate), max(rates[1], one.conv_rate), max(rates[2], one.copy_rate)
        _measured[key] = Roofline(str(target_device), dtype, count, *rates)
    return _measured[key]


def matmul_rate(device: torch.device, dtype: torch.dtype, clock: Clock = time.perf_counter) -> float:
    """Best FLOP/s over square products of sides 256, 512, 1024, …, until a larger one is no faster."""
    _warm_up(device, dtype, clock)
    return _best_rate(_products(device, dtype), device, clock)


def conv_rate(device: torch.device, dtype: torch.dtype, clock: Clock = time.perf_counter) -> float:
    """Best FLOP/s over 3×3 convolutions with 32, 64, 128, … channels, until a larger one is no faster.

    FLOP are those of the direct algorithm, whichever the library uses.
    """
    return _best_rate(_convolutions(device, dtype), device, clock)


def copy_rate(device: torch.device, clock: Clock = time.perf_counter) -> float:
    """Best B/s, read plus written, over copies of a buffer several times the last-level cache's size."""
    source = torch.ones(_beyond_cache(device) // 4, dtype=torch.float32, device=device)
    target = torch.zeros_like(source)  # written once, so that no timed copy is the first to touch a page
    parts = PARTS[device.type]
    pairs = itertools.cycle(zip(target.chunk(parts), source.chunk(parts), strict=True))

    def copy_part() -> None:
        to, of = next(pairs)
        to.copy_(of)

    return 2 * source.nbytes / parts / _best_time(copy_part, device, clock)


_measured: dict[tuple[str, str, int], Roofline] = {}


def _products(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[float, Step]]:
    """(FLOP, call) of square products, each of twice the side."""
    side = SMALLEST
    while side <= LARGEST[device.type]:
        a = torch.randn(side, side, device=device).to(dtype)
        b = torch.randn(side, side, device=device).to(dtype)
        out = torch.empty_like(a)
        yield 2.0 * side**3, lambda a=a, b=b, out=out: torch.mm(a, b, out=out)  # type: ignore[misc]
        side *= 2


def _convolutions(device: torch.device, dtype: torch.dtype) -> Iterator[tuple[float, Step]]:
    """(FLOP, call) of convolutions that keep the size, each with twice the channels."""
    channels = CHANNELS
    while (flops := 2.0 * KERNEL**2 * channels**2 * IMAGES * PIXELS**2) <= 2.0 * LARGEST[device.type] ** 3:
        x = torch.randn(IMAGES, channels, PIXELS, PIXELS, device=device).to(dtype, memory_format=torch.channels_last)
        weight = torch.randn(channels, channels, KERNEL, KERNEL, device=device)
        weight = weight.to(dtype, memory_format=torch.channels_last)
        yield flops, lambda x=x, weight=weight: F.conv2d(x, weight, padding=KERNEL // 2)  # type: ignore[misc]
        channels *= 2


def _best_rate(sizes: Iterator[tuple[float, Step]], device: torch.device, clock: Clock) -> float:
    """Best FLOP/s over growing ``sizes``. The search stops at a plateau, once a size fills the device."""
    best = 0.0
    for flops, work in sizes:
        before, best = best, max(best, flops / _best_time(work, device, clock))
        if flops >= 2.0 * LEAST_SIDE[device.type] ** 3 and best < PLATEAU * before:
            break
    return best


def _best_time(work: Step, device: torch.device, clock: Clock) -> float:
    """Least seconds of a call, over ``SECONDS`` of calls after an untimed one that does the lazy set-up."""
    calls = CALLS[device.type]
    work()
    synchronise(device)
    times: list[float] = []
    while sum(times) < SECONDS or len(times) < LEAST_CALLS:
        start = clock()
        for _ in range(calls):
            work()
        synchronise(device)
        times.append(max(clock() - start, 1e-9))
    return min(times) / calls


def _warm_up(device: torch.device, dtype: torch.dtype, clock: Clock) -> None:
    """Run a GPU until its clock rate has risen, with a product that fills it."""
    if device.type == "cuda":
        _, work = next(one for one in _products(device, dtype) if one[0] >= 2.0 * LEAST_SIDE[device.type] ** 3)
        start = clock()
        while clock() - start < WARM_UP:
            work()
            synchronise(device)


def _beyond_cache(device: torch.device) -> int:
    """Bytes of a buffer that the last-level cache cannot hold: four times its size, within bounds."""
    if device.type == "cuda":
        return min(max(4 * torch.cuda.get_device_properties(device).L2_cache_size, 256 * _MIB), 1024 * _MIB)
    return min(max(4 * level3_cache(), 64 * _MIB), 256 * _MIB)
