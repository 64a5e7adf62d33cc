"""Which machine, which commit and which versions a measurement was made with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from highway_bench.gpu import gpu

PACKAGE = Path(__file__).resolve().parent.parent
CPU_INFO = Path("/proc/cpuinfo")


@cache
def machine_identity(device: str = "cpu") -> tuple[str, str | None]:
    """(machine, gpu): the hardware that ``device``'s history belongs to, and the GPU's name, ``None`` on a CPU.

    A GPU machine is its model (``nvidia-h100-80gb-hbm3``), a CPU machine its model and the cores this process may
    use (``cpu-amd-epyc-2c``): a run that is held to fewer cores is another machine. Raises ``BadInput`` for a device
    that this machine lacks.
    """
    if device.startswith("cuda"):
        name = gpu(device).name
        return slug(name), name
    return f"cpu-{slug(_cpu_model())}-{len(os.sched_getaffinity(0))}c", None


def provenance() -> dict[str, Any]:
    """Commit, versions and system, for a run's record."""
    return {
        "commit": commit(),
        "torch": torch_version(),
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
    }


@cache
def torch_version() -> str:
    """torch's version with its build (``2.13.0+cpu``)."""
    import torch

    return str(torch.__version__)


def commit(folder: Path = PACKAGE) -> str | None:
    """Commit of the source in ``folder``; ``None`` outside git.

    ``+dirty`` where tracked files there have changes, or where a Python file there is not tracked: a new block's.

    A package that is installed inside some other project's checkout is not tracked there, and has no commit.
    """
    if not _git(folder, "ls-files", "--", "."):
        return None
    found = _git(folder, "rev-parse", "HEAD")
    if not found:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    return found + ("+dirty" if changed or new else "")


def slug(text: str) -> str:
    """``text`` in lower case, letters and digits joined by ``-``; trade marks and clock rates left out."""
    text = re.sub(r"\((r|tm|c)\)|@.*|\b(cpu|processor)\b", " ", text.lower())
    return "-".join(re.findall(r"[a-z0-9.]+", text)) or "unknown"


def _cpu_model() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", CPU_INFO.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:  # not Linux, or a sandbox without /proc
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def _git(folder: Path, *words: str) -> str | None:
    """git's answer in ``folder``; ``None`` where there is no git, no checkout, or no commit."""
    # A hook's GIT_DIR would answer for another checkout.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
