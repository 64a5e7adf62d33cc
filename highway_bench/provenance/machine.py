"""Machine identity: the hardware and the torch that a measurement belongs to."""

from __future__ import annotations

import platform
import re
import runpy
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from highway_bench.provenance.gpu import gpu

CPU_INFO = Path("/proc/cpuinfo")


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

    A GPU machine is the model of its GPU and that of its processor, which launches the kernels
    (``nvidia-h100-80gb-hbm3-intel-xeon-8480``). A CPU machine is its model and the cores this process may use
    (``cpu-amd-epyc-2c``): a run that is restricted to fewer cores is on another machine.
    """
    host = slug(cpu_model())
    return Identity(f"{slug(gpu_name)}-{host}" if gpu_name else f"cpu-{host}-{cores()}c", gpu_name, torch_version())


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


def cpu_model() -> str:
    """The processor's model, as the system names it."""
    try:
        match = re.search(r"^model name\s*:\s*(.+)$", CPU_INFO.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:  # not Linux, or a sandbox without /proc
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def slug(text: str) -> str:
    """``text`` in lower case, letters and digits joined by ``-``; trade marks and clock rates left out."""
    text = re.sub(r"\((r|tm|c)\)|@.*|\b(cpu|processor)\b", " ", text.lower())
    return "-".join(re.findall(r"[a-z0-9.]+", text)) or "unknown"
