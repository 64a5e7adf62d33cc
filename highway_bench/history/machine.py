"""The machine of a series: its entry in asv's files, which does not change unless the hardware does.

Every field of the entry is part of a series' identity. Therefore the kernel's release, the exact bytes of memory, the
driver and the clocks are left out, and every entry has ``gpu``.
"""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from highway_bench.errors import BadInput
from highway_bench.history.files import MACHINE, NAME, NO_GPU, read_machine
from highway_bench.provenance import identity
from highway_bench.provenance.free_memory import gpu
from highway_bench.provenance.machine import cores, processor

GIB = 2**30


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
    """The entry of machine ``name``, all of it text. ``gpu_name`` is ``None`` where the CPU computes."""
    check_name(name)
    return {
        "machine": name,
        "gpu": gpu_name or NO_GPU,
        "os": platform.system(),
        "arch": platform.machine(),
        "cpu": without_trade_marks(processor().brand),
        "num_cpu": str(cores()),
        "ram": f"{rounded_gib(psutil.virtual_memory().total)} GiB",
    }


def check_name(name: str) -> None:
    """Raise ``BadInput`` where ``name`` cannot be a machine's: it is a folder's name."""
    if not NAME.match(name):
        raise BadInput(f"machine name {name!r}: use lower-case letters, digits, '.', '_' and '-'")


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
        if not (folder / name / MACHINE).is_file():
            continue
        known = read_machine(folder / name)
        other = [
            f"{field}={known.get(field)!r}, here {value!r}"
            for field, value in machine.items()
            if known.get(field) != value
        ]
        if other:
            raise BadInput(
                f"machine {name!r} is stored with other hardware ({'; '.join(other)}): two "
                f"machines need two names, so give this one its own with --machine NAME"
            )
