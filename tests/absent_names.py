"""What Windows or a Mac lacks, hidden from this package's modules alone.

As ``sitecustomize`` of a process it imitates the system that ``IMITATED`` names.
"""

from __future__ import annotations

import builtins
import importlib.abc
import os
import platform
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

AFFINITY = "sched_getaffinity sched_setaffinity"
WINDOWS: Mapping[str, frozenset[str]] = {
    "os": frozenset(
        f"{AFFINITY} pread pwrite killpg fork setsid getpgid getuid geteuid uname sysconf sysconf_names statvfs nice "
        "mkfifo wait WNOHANG chown fchmod getloadavg posix_spawn O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK".split()
    ),
    "signal": frozenset(
        {name for name in dir(signal) if name.startswith("SIG")}
        - {"SIGABRT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIG_DFL", "SIG_IGN"}
    )
    | {"pthread_sigmask", "pthread_kill", "sigwait", "setitimer", "alarm", "pause"},
    "time": frozenset(["tzset", "clock_gettime", "pthread_getcpuclockid"]),
}
ABSENT = frozenset(["fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix"])  # of Windows
DARWIN: Mapping[str, frozenset[str]] = {"os": frozenset(AFFINITY.split())}
INTEL = "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel"
LINUX = ("/proc", "/sys")


def imitate(system: str) -> None:
    """Hide from this package what ``system`` lacks: names, modules, and Linux's files."""
    windows = system == "Windows"
    lacking, absent = (WINDOWS, ABSENT) if windows else (DARWIN, frozenset[str]())
    shown = {
        module.__name__: without(module, lacking.get(module.__name__, frozenset())) for module in (os, signal, time)
    }
    shown["platform"] = without(platform, frozenset())
    shown["platform"].__dict__.update(system=lambda: system, processor=lambda: INTEL if windows else "arm")
    if not windows:
        import psutil

        del psutil.Process.cpu_affinity

    def imported(name: str, given: Any = None, here: Any = None, names: Sequence[str] = (), level: int = 0) -> Any:
        if name in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        found = builtins.__import__(name, given, here, names, level)
        return shown.get(found.__name__, found)

    class Loader(SourceFileLoader):
        def exec_module(self, module: ModuleType) -> None:
            module.__dict__["__builtins__"] = vars(builtins) | {"__import__": imported}
            super().exec_module(module)
            for name, value in list(vars(module).items()):
                if isinstance(value, str | Path) and str(value).startswith(LINUX):
                    setattr(module, name, type(value)("/nowhere"))
            if windows and self.name == "highway_bench.provenance.processor":
                module.__dict__["importlib"] = SimpleNamespace(import_module={"winreg": winreg()}.__getitem__)

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
            spec = PathFinder.find_spec(name, path, target) if name.partition(".")[0] == "highway_bench" else None
            if spec is not None and spec.origin is not None:
                spec.loader = Loader(name, spec.origin)
            return spec

    sys.meta_path.insert(0, Finder())


def without(module: ModuleType, names: frozenset[str]) -> ModuleType:
    """``module`` without ``names``."""
    copy = ModuleType(module.__name__)
    copy.__dict__.update({name: value for name, value in vars(module).items() if name not in names})
    return copy


def winreg() -> Any:
    """Windows' registry, which knows the processor's brand."""
    values = {"ProcessorNameString": ("Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz", 1)}
    return SimpleNamespace(
        HKEY_LOCAL_MACHINE=0, OpenKey=lambda *_: memoryview(b""), QueryValueEx=lambda _, name: values[name]
    )


if __name__ == "sitecustomize":
    imitate(os.environ["IMITATED"])
