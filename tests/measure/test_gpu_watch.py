"""The watch of a GPU on a fake one: what its times leave out, its clock rate, and the causes of a capped clock."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from highway_bench.measure import gpu_watch
from highway_bench.measure.clock import Stopwatch
from highway_bench.measure.gpu_watch import MOST_HIDDEN, GpuWatch, stopwatch_of
from highway_bench.measure.processes import process_delay

RATE = 2e9  # cycles a second
LAUNCH = 1e-4  # seconds that the host takes for a kernel


class FakeGpu:
    """A host that launches kernels into the queue of a device, each with a clock of its own."""

    def __init__(self) -> None:
        self.host = self.device = 0.0

    def kernel(self, seconds: float) -> None:
        self.host += LAUNCH
        self.device = max(self.device, self.host) + seconds

    def sleep(self, cycles: int) -> None:
        self.kernel(cycles / RATE)

    def synchronise(self, _: object = None) -> None:
        self.host = max(self.host, self.device)

    def event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu, self.at = gpu, 0.0

    def record(self) -> None:
        self.at = max(self.gpu.host, self.gpu.device)

    def elapsed_time(self, end: FakeEvent) -> float:
        return 1e3 * (end.at - self.at)


class NvmlError(Exception):
    """NVML's error."""


def nvml(**functions):
    """A fake of NVML's module."""

    def handle(uuid):
        if uuid != "GPU-1234":
            raise NvmlError("not found")
        return uuid

    return SimpleNamespace(NVMLError=NvmlError, nvmlInit=lambda: None, nvmlDeviceGetHandleByUUID=handle, **functions)


@pytest.fixture
def gpu(monkeypatch):
    """A fake GPU in the place of torch's."""
    fake = FakeGpu()
    monkeypatch.setattr(torch.cuda, "Event", fake.event)
    monkeypatch.setattr(torch.cuda, "_sleep", fake.sleep)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="1234"))
    monkeypatch.setattr(gpu_watch, "synchronise", fake.synchronise)
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetCurrentClocksEventReasons=lambda _: 0))
    return fake


def test_a_gpus_stopwatch_reads_it(gpu):
    assert isinstance(stopwatch_of("cuda", 1).gpu, GpuWatch)
    assert stopwatch_of("cuda", 1).delay is Stopwatch.of("cuda", 1).delay is process_delay
    assert (stopwatch_of("cpu", 1).gpu, stopwatch_of("cpu", 2).gpu) == (None, None)


def test_the_clock_rate_is_that_of_a_counted_kernel(gpu):
    watch = GpuWatch()
    assert watch.clock_rate() == pytest.approx(RATE, rel=0.2)  # the probe's own launch counts too
    assert watch.clock_rate() < RATE


@pytest.mark.parametrize("kernels", [1, 90])
def test_gpu_time_leaves_the_launches_out(gpu, kernels):
    """A kernel takes a tenth of its launch. The wall time is that of launching; the GPU time that of the kernels."""

    def launch():
        for _ in range(kernels):
            gpu.kernel(LAUNCH / 10)

    assert GpuWatch().seconds(launch, 1.1 * kernels * LAUNCH) == pytest.approx(kernels * LAUNCH / 10)


def test_a_long_step_is_not_waited_for(gpu):
    watch = GpuWatch()
    start = gpu.host
    watch.seconds(lambda: gpu.kernel(0.0), 3600.0)
    assert gpu.host - start < 2 * MOST_HIDDEN


@pytest.mark.parametrize(
    ("reasons", "caps"),
    [
        (0x00, set()),
        (0x01 | 0x02 | 0x10 | 0x100, set()),  # idle, a clock that the user set, sync boost, display
        (0x04, {"power cap"}),
        (0x20 | 0x40, {"heat", "heat, hardware"}),
        (0x08 | 0x80 | 0x01, {"hardware slow-down", "power brake"}),
    ],
)
def test_heat_and_power_cap_a_clock(gpu, monkeypatch, reasons, caps):
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetCurrentClocksEventReasons=lambda _: reasons))
    watch = GpuWatch()
    assert (watch.caps(), watch.unread) == (caps, None)


def refused(_):
    raise NvmlError("Function Not Found")


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (None, "nvidia-ml-py is not installed"),
        (nvml(nvmlDeviceGetCurrentClocksThrottleReasons=refused), "Function Not Found"),
    ],
)
def test_causes_that_cannot_be_read_are_said_to_be_so(gpu, monkeypatch, module, reason):
    monkeypatch.setitem(sys.modules, "pynvml", module)
    watch = GpuWatch()
    assert (watch.caps(), watch.unread) == (set(), reason)


@pytest.mark.gpu
def test_a_real_gpu():
    watch = GpuWatch()
    assert 1e8 < watch.clock_rate() < 1e10
    x = torch.ones(4096, 4096, device="cuda")
    assert 0 < watch.seconds(lambda: x @ x, 1e-3) < 1
    assert watch.unread is None
