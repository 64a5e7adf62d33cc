"""Verdicts that flip: a block that trains from one start, or with one kind of branch, and not with another.

Such a verdict is about the start or the branch as much as about the block, and is printed so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd

from highway_bench.report.frame import groups
from highway_bench.report.number import listed
from highway_bench.report.tables.trainability import STALLS, TRAINS, contests

BRANCHES: Final = {"dense-pair": "dense", "conv-pair": "conv"}
"""Families whose branch has two affine maps, by the family with one."""


@dataclass(frozen=True)
class Flip:
    """``block`` trains in ``trains`` and not in ``stalls``, families with their options, at all of ``depths``."""

    block: str
    trains: str
    stalls: str
    depths: tuple[int, ...]

    def __str__(self) -> str:
        at = f"depth{'s' if len(self.depths) > 1 else ''} {listed([str(depth) for depth in self.depths])}"
        return f"{self.block} trains in {self.trains}, not in {self.stalls}, at {at}"


def flips(table: pd.DataFrame) -> list[Flip]:
    """Every flip in a trainability table, among runs of one data set that differ in the family's options or branch."""
    rungs = pd.concat([table.iloc[:0], *(part for _, part in contests(table))])
    families = [str(label).partition(" ")[0] for label in rungs["family_label"]]
    rungs = rungs.assign(kind=[BRANCHES.get(family, family) for family in families])
    found: dict[tuple[str, str, str], list[int]] = {}
    for place, part in groups(rungs, ["kind", "dataset", "match", "block", "depth"]):
        for trains in sorted(set(part.loc[part["verdict"] == TRAINS, "family_label"])):
            for stalls in sorted(set(part.loc[part["verdict"] == STALLS, "family_label"])):
                if trains != stalls:
                    found.setdefault((str(place["block"]), trains, stalls), []).append(int(str(place["depth"])))
    return [Flip(block, trains, stalls, tuple(sorted(depths))) for (block, trains, stalls), depths in found.items()]
