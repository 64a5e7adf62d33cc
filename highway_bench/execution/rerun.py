"""Rerun: which of the stored cells a run measures again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from highway_bench.cell import Cell
from highway_bench.errors import BadInput

FAILED, ALL = "failed", "all"


@dataclass(frozen=True)
class Rerun:
    """``failed``: the cells that failed, which every run measures again. ``all``: every cell. Any other word is a
    pattern: the failed cells, and those whose name (``str(cell)``) has the pattern in it, with wildcards."""

    word: str = FAILED

    def check(self, cells: Iterable[Cell]) -> None:
        """Raise ``BadInput`` for a pattern that is in no cell's name."""
        if self.word not in {FAILED, ALL} and not (self.word and any(map(self.names, cells))):
            raise BadInput(f"no cell of this run has {self.word!r} in its name; --rerun takes failed, all or a pattern")

    def names(self, cell: Cell) -> bool:
        """Whether ``cell`` itself is requested: then it is measured from its beginning, whatever is stored of it."""
        return self.word == ALL or (self.word != FAILED and fnmatchcase(str(cell), f"*{self.word}*"))
