"""Machine: its identity (the hardware and the torch that a measurement belongs to), its processor, and its load.

The load is what else kept a machine busy between two moments: stolen time, and pressure on its cores and memory.
"""

from __future__ import annotations

import importlib
import platform
import re
import runpy
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from highway_bench.provenance.free_memory import gpu

CPU_INFO = Path("/proc/cpuinfo")
LEVELS = {
    "amx_tile": "amx",
    "avx512f": "avx512",
    "avx2": "avx2",
    "avx": "avx",
    "sse4_2": "sse4",
    "sve2": "sve2",
    "sve": "sve",
    "asimd": "neon",
    "neon": "neon",
}
"""Vector instructions as Linux lists them, and what they are called here; the widest of each architecture first."""
VECTOR = re.compile(r"(?:amx|avx|sse|fma|sve|sme|asimd|neon|altivec|vsx)")
IN_ONE_LINE = re.compile(r"(.+) Family (\d+) Model (\d+) Stepping (\d+), (.+)")
"""Windows: ``Intel64 Family 6 Model 158 Stepping 10, GenuineIntel``."""
WINDOWS_KEY = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"

NAME = re.compile(
    r"(?:cpu-|(?P<gpu>[a-z0-9.-]+)_)(?P<brand>apple-m\d+(?:-[a-z]+)*|[a-z0-9.-]+?)"
    r"(?:-(?:f(?P<family>\d+))?m(?P<model>[0-9a-fx.]+))?"
    rf"(?:-(?:{'|'.join(dict.fromkeys(LEVELS.values()))}))?-(?P<cores>\d+)c"
)
"""A machine's name; up to version 0.2 it had neither family, model nor vector instructions, and an Apple chip's has
none."""
UPPER = re.compile(r"(amd|arm|epyc|nvidia|(?!0x)[a-z]{0,4}\d\w*)\Z")
PRESSURE = Path("/proc/pressure")


class Identity(NamedTuple):
    """The machine's name, its GPU's name (``None`` for a CPU), and torch's version with its build."""

    machine: str
    gpu: str | None
    torch: str


@cache
def identity(device: str = "cpu") -> Identity:
    """The identity of this machine where ``device`` computes. Raises ``BadInput`` for a device that it lacks."""
    return identity_with(gpu(device).name if device.startswith("cuda") else None)


def identity_with(gpu_name: str | None) -> Identity:
    """The identity of this machine with the GPU called ``gpu_name``, or of its CPU.

    A machine is its processor's brand, vendor, family, model and widest vector instructions, and the cores that this
    process may use: ``cpu-amd-epyc-f26m2-avx512-2c``. One brand may be several processors, and a run that is restricted
    to fewer cores is on another machine. A GPU, if one computes, comes first:
    ``nvidia-h200_intel-xeon-f6m143-amx-16c``; the processor launches its kernels.
    """
    device = f"{slug(gpu_name)}_" if gpu_name else "cpu-"
    return Identity(f"{device}{host()}-{cores()}c", gpu_name, torch_version())


def host() -> str:
    """The processor's part of a machine's name, without what the system does not say."""
    here, brand = processor(), slug(processor().brand)
    vendor = slug(re.sub("Authentic|Genuine", "", here.vendor)) if here.vendor else ""
    number = (here.family and f"f{slug(here.family)}") + (here.model and f"m{slug(here.model)}")
    return "-".join(part for part in (brand, "" if vendor in brand else vendor, number, here.vectors) if part)


def labels(names: Iterable[str]) -> dict[str, str]:
    """Machines' names as they are shown: ``AMD EPYC (family 26), 2 cores``; a name that someone chose as it is.

    The model is added where two of the ``names`` would be shown alike.
    """
    short = {name: _label(name) for name in set(names)}
    counts = Counter(short.values())
    return {name: text if counts[text] == 1 else _label(name, model=True) for name, text in short.items()}


def _label(name: str, *, model: bool = False) -> str:
    about = NAME.fullmatch(name)
    if about is None:
        return name
    numbers = [f"family {about['family']}"] if about["family"] else []
    numbers += [f"model {about['model']}"] if about["model"] and (model or not numbers) else []
    device = f"{_words(about['gpu'])}, " if about["gpu"] else ""
    cores = "1 core" if about["cores"] == "1" else f"{about['cores']} cores"
    known = "" if about["brand"].startswith("apple-") else f" ({', '.join(numbers) or 'family not recorded'})"
    return f"{device}{_words(about['brand'])}{known}, {cores}"


def _words(text: str) -> str:
    return " ".join(word.upper() if UPPER.match(word) else word.capitalize() for word in text.split("-"))


@cache
def torch_version() -> str:
    """torch's version with its build (``2.13.0+cpu``), read from its file: importing torch takes seconds.

    A wheel's metadata may lack the build. Raises ``ModuleNotFoundError`` where torch is not installed.
    """
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("torch is not installed", name="torch")
    return str(runpy.run_path(str(Path(spec.origin).with_name("version.py")))["__version__"])


def cores() -> int:
    """The cores that this process may use: those of its affinity, or fewer where its control group, as of a container,
    limits its processor time."""
    from joblib import cpu_count  # a quarter of a second

    return int(cpu_count())


def slug(text: str) -> str:
    """``text`` in lower case, letters and digits joined by ``-``; trade marks and clock rates left out."""
    text = re.sub(r"\((r|tm|c)\)|@.*|\b(cpu|processor)\b", " ", text.lower())
    return "-".join(re.findall(r"[a-z0-9.]+", text)) or "unknown"


class Processor(NamedTuple):
    """A processor; what the system does not say is empty.

    ``family`` and ``model`` are the numbers in the processor itself. ARM has no family: its ``vendor`` is the
    implementer's number, its ``model`` the part's, or those of all kinds of core. ``stepping``, ``cache`` and ``clock``
    are for the record: they do not make another machine.
    """

    brand: str
    vendor: str = ""
    family: str = ""
    model: str = ""
    instructions: tuple[str, ...] = ()
    stepping: str = ""
    cache: str = ""
    clock: str = ""

    @property
    def vectors(self) -> str:
        """The widest vector instructions: ``avx512``; empty where none are known."""
        return next((level for flag, level in LEVELS.items() if flag in self.instructions), "")


@cache
def processor() -> Processor:
    """This machine's processor: from ``/proc/cpuinfo`` on Linux, elsewhere from what Python and the system say."""
    try:
        text = CPU_INFO.read_text(encoding="utf-8")
    except OSError:  # not Linux, or a sandbox without /proc
        text = ""
    return _of_linux(text) if text else _of_python()


def _of_linux(text: str) -> Processor:
    lines: dict[str, list[str]] = {}
    for name, value in re.findall(r"^([^:\n]+?)[ \t]*:[ \t]*(.*?)[ \t]*$", text, re.MULTILINE):
        lines.setdefault(name, []).append(value)

    def first(*names: str) -> str:
        return next((lines[name][0] for name in names if name in lines), "")

    flags = first("flags", "Features").split()
    return Processor(
        brand=first("model name") or platform.processor() or platform.machine(),
        vendor=first("vendor_id", "CPU implementer"),
        family=first("cpu family"),
        model=first("model") or ".".join(sorted(set(lines.get("CPU part", ())))),
        instructions=tuple(flag for flag in flags if VECTOR.match(flag)),
        stepping=first("stepping", "CPU revision"),
        cache=first("cache size"),
        clock=first("cpu MHz"),
    )


def _of_python() -> Processor:
    text, sold_as = platform.processor() or platform.machine(), _sold_as()
    about = IN_ONE_LINE.fullmatch(text)
    if about is None:
        return Processor(sold_as or text)
    brand, family, model, stepping, vendor = about.groups()
    return Processor(sold_as or brand, vendor, family, model, stepping=stepping)


def _sold_as() -> str:
    """The brand that macOS or Windows knows; elsewhere empty."""
    if platform.system() == "Darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    if platform.system() == "Windows":
        registry: Any = importlib.import_module("winreg")
        with registry.OpenKey(registry.HKEY_LOCAL_MACHINE, WINDOWS_KEY) as key:
            return str(registry.QueryValueEx(key, "ProcessorNameString")[0])
    return ""


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
