"""What else kept a machine busy between two moments: stolen time, and pressure on its cores and memory."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psutil

PRESSURE = Path("/proc/pressure")


@dataclass(frozen=True)
class Load:
    """Seconds since the machine started: of stolen time (all cores), of pressure on each resource, and of wall time.

    Pressure is the time in which some task waited for the resource, as Linux counts it; empty where it does not.
    """

    wall: float
    stolen: float
    pressure: dict[str, float]

    @classmethod
    def now(cls) -> Load:
        """The counters at this moment."""
        pressure = {}
        for resource in ("cpu", "memory"):
            path = PRESSURE / resource
            if path.is_file():
                some = path.read_text(encoding="ascii").splitlines()[0]
                pressure[resource] = 1e-6 * int(some.rpartition("total=")[2])
        return cls(time.monotonic(), getattr(psutil.cpu_times(), "steal", 0.0), pressure)

    def since(self) -> Load:
        """The difference from then to now."""
        now = Load.now()
        pressure = {name: now.pressure[name] - seconds for name, seconds in self.pressure.items()}
        return Load(now.wall - self.wall, now.stolen - self.stolen, pressure)

    def __str__(self) -> str:
        """Shares of the wall time, for a difference."""
        cores = psutil.cpu_count() or 1
        shares = {f"{name} pressure": seconds / self.wall for name, seconds in self.pressure.items()}
        shares["stolen"] = self.stolen / self.wall / cores
        return ", ".join(f"{name} {100 * share:.2g} %" for name, share in shares.items())
