"""GPU watch: a step's time on the device, the device's clock rate, and why that clock is capped.

A step has two times on a GPU. The wall time, with a synchronisation at its end, is what a user waits for, and includes
what the host takes to launch kernels. The GPU time is the time between two events of the stream, and leaves that out.

A GPU lowers its clock when it is too hot or takes too much power. Times then tell about the cooling as well, and the
step that heats more loses more. NVIDIA's management library (NVML) gives the reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from .clock import Stopwatch
from .device import synchronise
from .torch_internals import SLEEP

CAPS = {  # of NVML's clock event reasons: those by which heat or power lower the clock
    0x04: "power cap",
    0x08: "hardware slow-down",
    0x20: "heat",
    0x40: "heat, hardware",
    0x80: "power brake",
}
READERS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")  # new and old name
PROBE = 1_000_000  # cycles of the clock probe: about half a millisecond, against some 2 µs of a kernel's launch
HIDING = 1.5, 1e-4  # of a step's wall time, and in seconds: how long the device idles while its kernels are queued
MOST_HIDDEN = 0.01  # seconds that it idles at most


def stopwatch_of(device: str, threads: int) -> Stopwatch:
    """``Stopwatch.of``, which on a GPU also reads that GPU."""
    watch = Stopwatch.of(device, threads)
    return watch if device == "cpu" else replace(watch, gpu=GpuWatch(device))


class GpuWatch:
    """Reads a CUDA ``device`` between the calls of the steps that are timed on it.

    ``unread`` is the reason why the causes of a capped clock cannot be read, if they cannot.
    """

    def __init__(self, device: str | torch.device = "cuda") -> None:
        self.device = torch.device(device)
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._rate = self.clock_rate()
        self.unread: str | None = None
        self._reasons = self._reader()

    def seconds(self, launch: Callable[[], object], wall: float) -> float | None:
        """GPU time of ``launch``, which need not wait for the device; ``None`` where torch cannot let the device idle.

        The device first idles for longer than the step's ``wall`` time, at most ``MOST_HIDDEN`` seconds, so that the
        kernels are queued before the first one starts. The queue holds about a thousand. A longer step waits for the
        host after that, and so does one that reads from the device.
        """
        if (idle := SLEEP.found) is None:
            return None
        share, least = HIDING
        idle(round(min(share * wall + least, MOST_HIDDEN) * self._rate))
        return self._between_events(launch)

    def clock_rate(self) -> float:
        """The clock rate of the multiprocessors in Hz, from a kernel that counts ``PROBE`` cycles; 0 without."""
        idle = SLEEP.found
        self._rate = 0.0 if idle is None else PROBE / self._between_events(lambda: idle(PROBE))
        return self._rate

    def caps(self) -> frozenset[str]:
        """Why the clock is capped at this moment; empty where it is not, and where that cannot be read."""
        reasons = self._reasons()
        return frozenset(name for bit, name in CAPS.items() if reasons & bit)

    def _between_events(self, launch: Callable[[], object]) -> float:
        self._start.record()
        launch()
        self._end.record()
        synchronise(self.device)
        return 1e-3 * float(self._start.elapsed_time(self._end))

    def _reader(self) -> Callable[[], int]:
        """A function that reads NVML's reasons, or that returns 0 where none can be read."""
        try:
            import pynvml
        except ImportError:
            self.unread = "nvidia-ml-py is not installed"
            return int
        try:
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(self.device).uuid}")
        except pynvml.NVMLError as error:
            self.unread = str(error)
            return int

        def read() -> int:
            for name in READERS:
                try:
                    reasons = int(getattr(pynvml, name)(handle))
                except (AttributeError, pynvml.NVMLError) as error:
                    self.unread = str(error)
                else:
                    self.unread = None
                    return reasons
            return 0

        read()
        return read
