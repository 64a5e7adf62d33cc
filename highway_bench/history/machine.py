"""The machine and the environment of a series, which do not change unless the hardware does, or python or torch.

Every field of a machine's entry in asv's files is part of a series' identity. Therefore the kernel's release, the exact
bytes of memory, the driver and the clocks are left out, and every entry has ``gpu``. Of the environment, the minor
versions of python and torch are part of it, without builds and paths.
"""

from __future__ import annotations

import math
import platform
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from highway_bench.errors import BadInput
from highway_bench.history.files import MACHINE, NAME, NO_GPU, differences, read_machine
from highway_bench.provenance import identity
from highway_bench.provenance.free_memory import gpu
from highway_bench.provenance.machine import cores, processor

GIB = 2**30
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True)
class Machine:
    """The machine that measures: its device (``cpu`` or ``cuda``) and its entry in asv's files."""

    device: str
    entry: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.entry["machine"]


def this_machine(device: str | None = None, name: str | None = None) -> Machine:
    """This machine with ``device``, by default a GPU if torch finds one, under ``name``, by default its identity's.

    Raises ``BadInput`` for a device that it lacks.
    """
    if device not in (None, "cpu", "cuda"):
        raise BadInput(f"a device is cpu or cuda, not {device!r}")
    if device is None:
        try:
            gpu("cuda")
            device = "cuda"
        except BadInput:
            device = "cpu"
    here = identity(device)
    return Machine(device, entry(name or here.machine, here.gpu))


def entry(name: str, gpu_name: str | None) -> dict[str, str]:
    """The entry of machine ``name``, all of it text. ``gpu_name`` is ``None`` where the CPU computes.

    Raises ``BadInput`` where ``name`` cannot be a machine's: it is a folder's name.
    """
    if not NAME.match(name):
        raise BadInput(f"machine name {name!r}: use lower-case letters, digits, '.', '_' and '-'")
    return {
        "machine": name,
        "gpu": gpu_name or NO_GPU,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": without_trade_marks(processor().brand),
        "num_cpu": str(cores()),
        "ram": f"{rounded_gib(psutil.virtual_memory().total)} GiB",
    }


def without_trade_marks(model: str) -> str:
    """A processor's model without trade marks and clock rates."""
    return " ".join(re.sub(r"\((R|TM|C)\)|@.*", " ", model, flags=re.IGNORECASE).split())


def rounded_gib(bytes_of_memory: int) -> int:
    """Memory in GiB, rounded up to 1, 2, 3, 4, 6, 8, 12, …: the kernel's own share changes with releases."""
    gib = max(bytes_of_memory / GIB, 1.0)
    power = 2.0 ** math.floor(math.log2(gib))
    return math.ceil(next(size for size in (power, 1.5 * power, 2 * power) if gib <= size))


def write_entry(machine: Mapping[str, str]) -> None:
    """Write the entry into asv's own file, ``~/.asv-machine.json``; other machines' entries there stay."""
    from asv.machine import MachineCollection
    from asv.util import UserError

    try:
        MachineCollection.save(machine["machine"], dict(machine))
    except UserError as error:
        raise BadInput(f"~/.asv-machine.json cannot be read: {error}") from error


def check_clash(machine: Mapping[str, Any], *folders: Path) -> None:
    """Raise ``BadInput`` if one of the ``folders`` has results of another machine of this name."""
    name = machine["machine"]
    for folder in folders:
        if (folder / name / MACHINE).is_file() and (other := differences(read_machine(folder / name), machine)):
            raise BadInput(
                f"machine {name!r} is stored with other hardware ({other}): two machines need two names, so give this "
                "one its own with --machine NAME"
            )


def pinned() -> dict[str, str]:
    """The packages that no commit replaces, with their versions here."""
    found = {}
    for name in ("torch", "highway-bench"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def requirements() -> dict[str, str]:
    """torch's minor version, which is part of every series' identity."""
    return {name: ".".join(known.split("+")[0].split(".")[:2]) for name, known in pinned().items() if name == "torch"}


def series_name() -> str:
    """The environment's name. Result files have it in their names, so a commit that is measured again is replaced."""
    return "-".join([f"py{PYTHON}", *(name + number for name, number in requirements().items())])
