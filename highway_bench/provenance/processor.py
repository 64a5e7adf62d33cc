"""The processor: what the system says of it, by which machines are told apart."""

from __future__ import annotations

import importlib
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

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
