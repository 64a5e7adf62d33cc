"""Connections: the blocks and starts that an advice compares, the ones that matter most first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from highway_bench.blocks import BlockGroup, blocks
from highway_bench.cell import StartName
from highway_bench.families import Family
from highway_bench.plan.expand import joins
from highway_bench.studies.decide.candidate import REFERENCE

GROUPS: Final[tuple[BlockGroup, ...]] = ("core", "modern", "own")


class Connection(NamedTuple):
    """A block at one of its starts."""

    block: str
    start: StartName

    def __str__(self) -> str:
        starts = blocks.get(self.block).starts if self.block in blocks else ()
        return f"{self.block} ({self.start} start)" if len(starts) > 1 else self.block


def connections_for(family: Family, patterns: Sequence[str] = ()) -> list[Connection]:
    """Every connection that ``family`` can carry, or those of the blocks that match ``patterns``, and pre-norm.

    Controls and variants are among them only where a pattern is their full name. When time is short, the last ones are
    left out: first come the depth-aware starts (the only start of blocks that depend on depth in any case) in the order
    of the blocks, plain last; then the other starts in the same order. Raises ``UnknownName`` for a pattern that
    matches nothing, and ``BadInput`` for a full name of a block that ``family`` cannot have.
    """
    chosen = blocks.select(*(patterns or ["*"]), REFERENCE)
    specs = [blocks.get(name) for name in chosen if blocks.get(name).group in GROUPS or name in patterns]
    for spec in specs:
        if spec.name in patterns:
            spec.check_family(family)
    ranks: dict[Connection, tuple[bool, bool, bool, float, str]] = {}
    for spec in specs:
        starts = [start.name for start in spec.starts if start.init in family.inits]
        if starts and joins(spec.name, family):
            main: StartName = "depth-aware" if "depth-aware" in starts else starts[0]
            for start in starts:
                reference = spec.name == REFERENCE and start == main
                order = math.inf if spec.order is None else spec.order
                ranks[Connection(spec.name, start)] = (not reference, start != main, spec.baseline, order, spec.name)
    return sorted(ranks, key=ranks.__getitem__)
