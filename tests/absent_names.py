"""What Windows or a Mac lacks, hidden from this package's modules alone.

As ``sitecustomize`` of a process it imitates the system that ``IMITATED`` names.
"""

import builtins
import os
import platform
import signal
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import psutil

DARWIN = frozenset(["os.sched_getaffinity", "os.sched_setaffinity"])
POSIX = (
    "os.pread os.pwrite os.killpg os.fork os.setsid os.getpgid os.getuid os.geteuid os.uname os.sysconf "
    "os.sysconf_names os.statvfs os.nice os.mkfifo os.wait os.chown os.fchmod os.getloadavg os.O_CLOEXEC os.O_NONBLOCK "
    "signal.SIGKILL signal.SIGPIPE signal.SIGHUP signal.SIGQUIT signal.SIGSTOP signal.SIGCONT signal.SIGUSR1 "
    "signal.SIGUSR2 signal.SIGALRM signal.SIGCHLD signal.SIG_BLOCK signal.SIG_SETMASK signal.pthread_sigmask "
    "signal.sigwait signal.setitimer signal.alarm time.tzset time.clock_gettime fcntl resource pwd grp termios"
)
WINDOWS = DARWIN | frozenset(POSIX.split())
PROCESSORS = {"Windows": "Intel64 Family 6 Model 158 Stepping 10, GenuineIntel", "Darwin": "arm"}
BRAND = "Intel(R) Core(TM) i7-8700 CPU @ 3.20GHz"


def imitate(system):
    """Hide from this package what ``system`` lacks: names, modules, and Linux's files."""
    lacking, given = (WINDOWS if system == "Windows" else DARWIN), builtins.__import__
    shown = {module.__name__: without(module, lacking) for module in (os, signal, time, platform)}
    vars(shown["platform"]).update(system=lambda: system, processor=lambda: PROCESSORS[system])
    registry = SimpleNamespace(
        HKEY_LOCAL_MACHINE=0, OpenKey=lambda *_: memoryview(b""), QueryValueEx=lambda *_: (BRAND, 1)
    )
    if system == "Darwin":
        del psutil.Process.cpu_affinity

    def imported(name, globals=None, *further, **named):  # noqa: A002
        is_ours = str((globals or {}).get("__name__")).startswith("highway_bench")
        if is_ours and name in lacking:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        found = given(name, globals, *further, **named)
        if found.__name__.startswith("highway_bench"):
            for key, value in list(vars(found).items()):
                if isinstance(value, str | Path) and str(value).startswith(("/proc", "/sys")):
                    setattr(found, key, type(value)("/nowhere"))
            if found.__name__ == "highway_bench.provenance.machine":
                vars(found)["importlib"] = SimpleNamespace(import_module={"winreg": registry}.get)
        return shown.get(found.__name__, found) if is_ours else found

    builtins.__import__ = imported


def without(module, names):
    """``module`` without ``names``."""
    copy = ModuleType(module.__name__)
    vars(copy).update({key: value for key, value in vars(module).items() if f"{module.__name__}.{key}" not in names})
    return copy


if __name__ == "sitecustomize":
    imitate(os.environ["IMITATED"])
