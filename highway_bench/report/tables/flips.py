"""Verdicts that flip: a block that trains from one start, or with one kind of branch, and not with another.

Such a verdict is about the start or the branch as much as about the block, and is printed so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

from highway_bench.report.format import listed
from highway_bench.report.rows import groups
from highway_bench.report.tables.trainability import contests
from highway_bench.success import STALLS, TRAINS

# Named here, as in frame.py: the registry of families imports torch. Another family is compared with itself alone.
BRANCHES: Final = {"dense-pair": "dense", "conv-pair": "conv"}
"""Families whose branch has two affine maps, by the family with one."""


@dataclass(frozen=True)
class Flip:
    """``block`` trains in ``trains`` and not in ``stalls``, families with their options, at all of ``depths``.

    ``machine`` is empty where there is one only.
    """

    block: str
    trains: str
    stalls: str
    depths: tuple[int, ...]
    machine: str = ""

    def __str__(self) -> str:
        at = f"depth{'s' if len(self.depths) > 1 else ''} {listed([str(depth) for depth in self.depths])}"
        where = f" on {self.machine}" if self.machine else ""
        return f"{self.block} trains in {self.trains}, not in {self.stalls}, at {at}{where}"


def flips(table: pd.DataFrame) -> list[Flip]:
    """Every flip in a trainability table, among runs of one data set and machine that differ in options or branch."""
    rungs = pd.concat([table.iloc[:0], *(part for _, part in contests(table))])
    families = [str(label).partition(" ")[0] for label in rungs["family_label"]]
    rungs = rungs.assign(kind=[BRANCHES.get(family, family) for family in families])
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for place, part in groups(rungs, ["kind", "dataset", "match", "machine", "machine_label", "block", "depth"]):
        for trains in sorted(set(part.loc[part["verdict"] == TRAINS, "family_label"])):
            for stalls in sorted(set(part.loc[part["verdict"] == STALLS, "family_label"])):
                if trains != stalls:
                    key = str(place["block"]), trains, stalls, str(place["machine_label"])
                    found.setdefault(key, []).append(int(str(place["depth"])))
    return [
        Flip(block, trains, stalls, tuple(sorted(depths)), machine)
        for (block, trains, stalls, machine), depths in found.items()
    ]
