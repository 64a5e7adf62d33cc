"""Machine identity: the entry that asv keeps of this machine, made so that it does not change without the hardware.

Every field of the entry is part of a series' identity. So the kernel's release, the exact bytes of memory, the driver
and the clocks stay out of it, and ``gpu`` is in it from the first commit on.
"""

from __future__ import annotations

import math
import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from highway_bench.errors import BadInput
from highway_bench.history.files import MACHINE, NAME, read_machine

NO_GPU = "none"
GIB = 2**30
BUSY = 0.75  # load a core in the last minute; installing what is needed takes half of it


def entry(name: str, gpu: str | None) -> dict[str, str]:
    """The entry of machine ``name`` with the GPU's name, or ``None`` where a CPU is measured. All values are text."""
    check_name(name)
    return {
        "machine": name,
        "gpu": gpu or NO_GPU,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": cpu_model(),
        "num_cpu": str(len(os.sched_getaffinity(0))),
        "ram": f"{rounded_gib(psutil.virtual_memory().total)} GiB",
    }


def check_name(name: str) -> None:
    """Raise ``BadInput`` where ``name`` cannot be a machine's: it is a folder's name."""
    if not NAME.match(name):
        raise BadInput(f"machine name {name!r}: use lower-case letters, digits, '.', '_' and '-'")


def cpu_model() -> str:
    """The processor's model, without trade marks and clock rates."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:  # not Linux, or a sandbox without /proc
        found = None
    text = found[1] if found else platform.processor() or platform.machine()
    return " ".join(re.sub(r"\((R|TM|C)\)|@.*", " ", text, flags=re.IGNORECASE).split())


def rounded_gib(bytes_of_memory: int) -> int:
    """Memory in GiB, rounded up to 1, 2, 3, 4, 6, 8, 12, …: what the kernel keeps for itself changes with releases."""
    gib = max(bytes_of_memory / GIB, 1.0)
    power = 2.0 ** math.floor(math.log2(gib))
    return math.ceil(next(size for size in (power, 1.5 * power, 2 * power) if gib <= size))


def busy() -> str | None:
    """A line that says so where other work keeps this machine busy: times measured beside it are partly its own, and a
    re-run a minute later as well."""
    load, cores = psutil.getloadavg()[0], len(os.sched_getaffinity(0))
    if load < BUSY * cores:
        return None
    return f"this machine is busy (load {load:.1f} on {cores} cores): times may have risen for that alone"


def write_entry(made: dict[str, str]) -> None:
    """Write the entry into asv's own file, ``~/.asv-machine.json``; other machines' entries there are kept."""
    from asv.machine import MachineCollection
    from asv.util import UserError

    try:
        MachineCollection.save(made["machine"], made)
    except UserError as error:
        raise BadInput(f"~/.asv-machine.json cannot be read: {error}") from error


def check_clash(made: dict[str, Any], *folders: Path) -> None:
    """Raise ``BadInput`` where results of another machine of this name lie in one of the ``folders``."""
    for folder in folders:
        if not (folder / made["machine"] / MACHINE).is_file():
            continue
        known = read_machine(folder / made["machine"])
        other = [
            f"{field}={known.get(field)!r}, here {made.get(field)!r}"
            for field in made
            if known.get(field) != made[field]
        ]
        if other:
            raise BadInput(
                f"machine {made['machine']!r} is recorded with other hardware ({'; '.join(other)}): two "
                f"machines need two names, so give this one its own with --machine NAME"
            )
