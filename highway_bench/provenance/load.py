"""What else kept a machine busy between two moments: stolen time, and pressure on its cores and memory."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

PRESSURE = Path("/proc/pressure")


@dataclass(frozen=True)
class Load:
    """Seconds since the machine started: of stolen time (all cores), of pressure on each resource, and of wall time.

    Pressure is the time in which some task waited for the resource, as Linux counts it; without those that it does not
    count.
    """

    wall: float
    stolen: float
    pressure: dict[str, float]

    @classmethod
    def now(cls) -> Load:
        """The counters at this moment."""
        pressure = {}
        for resource in ("cpu", "memory"):
            with suppress(OSError):  # no such file, or one that cannot be read since the kernel does not count
                some = (PRESSURE / resource).read_text(encoding="ascii").splitlines()[0]
                pressure[resource] = 1e-6 * int(some.rpartition("total=")[2])
        return cls(time.monotonic(), getattr(psutil.cpu_times(), "steal", 0.0), pressure)

    def since(self) -> Load:
        """The difference from then to now."""
        now = Load.now()
        counted = sorted(self.pressure.keys() & now.pressure.keys())
        pressure = {name: now.pressure[name] - self.pressure[name] for name in counted}
        return Load(now.wall - self.wall, now.stolen - self.stolen, pressure)

    def __str__(self) -> str:
        """Shares of the wall time, for a difference."""
        cores = psutil.cpu_count() or 1
        waits = [f"{name} {100 * seconds / self.wall:.2g} %" for name, seconds in self.pressure.items()]
        waited = f"meanwhile some program waited for {', '.join(waits)} of the time; " if waits else ""
        return f"{waited}other virtual machines took {100 * self.stolen / self.wall / cores:.2g} % of the cores"
