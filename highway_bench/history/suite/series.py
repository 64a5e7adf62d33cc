"""The table of the history's series: what is followed, in which unit, where, and how the gate judges it.

asv's benchmarks, the points, the gate and the pages are made from this table. For every series lower is better.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import NamedTuple

FAMILY_DEPTH, DEEP, OTHER_DEPTH = 4, (10, 50, 100), 10
QUICK = 50  # the greatest depth in a quick point


class Judged(Enum):
    """How the gate judges a series."""

    TIMED = "timed"  # a rise is confirmed by timing the last good commit and HEAD in turn
    EXACT = "exact"  # counted, not sampled: any rise is real
    TRAINED = "trained"  # a rise counts if it exceeds the spread of the seeds
    NOT = "not judged"


class Series(NamedTuple):
    """One thing that is followed at many cells.

    ``quick`` is the greatest depth at which quick points have it; 0 means that only full points do. ``group`` is the
    only group that has it; ``None`` means all.
    """

    name: str
    title: str
    unit: str
    judged: Judged
    quick: int = QUICK
    group: str | None = None

    @property
    def benchmark(self) -> str:
        """The name of asv's benchmark, without its class."""
        return f"track_{self.name}"


SERIES = (
    Series("ratio", "step time", "× torch's own layers", Judged.TIMED),
    Series("operator_calls", "operator calls", "operators", Judged.EXACT),
    Series("kernel_launches", "kernel launches", "kernels", Judged.EXACT),
    Series("flop", "FLOP", "FLOP", Judged.EXACT),
    Series("bytes_moved", "bytes moved", "bytes", Judged.EXACT),
    Series("saved_bytes", "activation memory", "bytes", Judged.EXACT),
    Series("peak_bytes", "peak memory", "bytes", Judged.EXACT),
    Series("log_loss", "training loss", "log10(loss / 1e-6 nat)", Judged.TRAINED, 10, "Depths"),
    Series("steps_to_threshold", "steps to threshold", "steps", Judged.TRAINED, 10, "Depths"),
    Series("seconds", "step time in seconds", "seconds", Judged.NOT, quick=0),
    Series("gpu_seconds", "step time on the GPU alone", "seconds", Judged.NOT, quick=0),  # n/a on a CPU
    Series("slowdown", "step time over the roofline's", "× roofline", Judged.NOT, quick=0),
)
BY_NAME = {series.name: series for series in SERIES}


class HistoryCell(NamedTuple):
    """What is measured: a stack of ``depth`` layers of a block and a family.

    ``size`` is plain's width and the batch size, such as ``64x512``; without it they are those of the family.
    """

    block: str
    family: str
    depth: int
    size: str = ""

    @property
    def names(self) -> tuple[str, str]:
        """The block and the family; a package's own layer comes first."""
        return (self.family, self.block) if is_own(self.family) else (self.block, self.family)

    def sizes(self, device: str) -> tuple[int, int]:
        """Plain's width and the batch size; larger on a GPU, which small cells do not load."""
        if self.size:
            width, batch = map(int, self.size.split("x"))
            return width, batch
        kind, large = self.family.partition("-")[0], device == "cuda"
        widths = {"dense": (128, 1024), "conv": (16, 128)}.get(kind, (64, 1024))
        batches = {"dense": (128, 1024)}.get(kind, (16, 64))
        return widths[large], batches[large]

    def described(self, device: str) -> str:
        """The cell with its width and batch size."""
        return f"{self} · {' × '.join(map(str, self.sizes(device)))}"

    def __str__(self) -> str:
        return f"{' · '.join(self.names)} · {self.depth} layers"


@cache
def _families_here() -> frozenset[str]:
    from ...declared import declared_in

    folder = Path(__file__).resolve().parents[2] / "families"
    return frozenset(str(entry["name"]) for entry in declared_in(sorted(folder.glob("*.py"))))


def is_own(family: str) -> bool:
    """Whether a family is a layer of another package than this one."""
    return family not in _families_here()


class Group(NamedTuple):
    """A class of asv's benchmarks. Its cells are the product of its ``axes``; what is no axis is in ``constant``."""

    name: str
    axes: Mapping[str, Sequence[str | int]]
    constant: Mapping[str, str | int]
    meaning: str

    @property
    def label(self) -> str:
        """What its cells have in common, for the pages: ``dense · 10 layers``; of own layers, also their sizes."""
        values = [f"{value} layers" if axis == "depth" else str(value) for axis, value in self.constant.items()]
        families = {cell.family for cell in self.cells}
        if "size" not in self.axes and all(map(is_own, families)):
            values.append(" × ".join(map(str, self.cells[0].sizes("cpu"))) + ", on a GPU 1024 × 64")
        return " · ".join(values)

    @property
    def cells(self) -> list[HistoryCell]:
        """All cells, in the order of asv's parameters."""
        return [self.cell(where) for where in itertools.product(*self.axes.values())]

    def cell(self, where: Sequence[str | int]) -> HistoryCell:
        """The cell at these values of the axes."""
        return HistoryCell(**{**self.constant, **dict(zip(self.axes, where, strict=True))})  # type: ignore[arg-type]

    @property
    def series(self) -> list[Series]:
        """The series that the group's cells have."""
        return [series for series in SERIES if series.group in (None, self.name)]


class Suite(NamedTuple):
    """The blocks and families that a package follows.

    ``core`` blocks are measured in every family and in deep stacks of the family ``deep``, by default the first own
    layer or else ``dense``; ``others`` at one cell each. Quick points time the core blocks in ``deep``, in all own
    layers and in the families ``timed``; the gate is as fast as these are few. ``sizes`` are further widths and batch
    sizes of own layers on a CPU. A family is a name, or ``module:layer``.
    """

    core: tuple[str, ...]
    families: tuple[str, ...]
    others: tuple[str, ...] = ()
    deep: str = ""
    timed: tuple[str, ...] = ()
    sizes: tuple[tuple[int, int], ...] = ((64, 512),)

    def on(self, device: str) -> Suite:
        """What is measured on ``device``."""
        return self if device == "cpu" else self._replace(sizes=())

    @property
    def own(self) -> list[str]:
        """The followed families that are layers of another package."""
        return [name for name in dict.fromkeys((*self.families, self.deep or "dense")) if is_own(name)]

    @property
    def stacked(self) -> str:
        """The family of the deep stacks."""
        return self.deep or next(iter(self.own), "dense")

    @property
    def groups(self) -> list[Group]:
        """asv's classes; one without a cell is left out."""
        depth, deep = {"depth": FAMILY_DEPTH}, {"family": self.stacked}
        sizes = [f"{width}x{batch}" for width, batch in self.sizes]
        every = (
            Group("Families", {"block": self.core, "family": self.families}, depth, "Core blocks."),
            Group("Depths", {"block": self.core, "depth": DEEP}, deep, "Core blocks in deeper stacks."),
            Group("Others", {"block": self.others}, deep | {"depth": OTHER_DEPTH}, "The other blocks."),
            Group("Sizes", {"block": self.core, "family": self.own, "size": sizes}, depth, "Own layers, larger."),
        )
        return [group for group in every if all(group.axes.values())]

    @property
    def names(self) -> dict[str, tuple[Series, HistoryCell]]:
        """What each of asv's names stands for, without the module: ``Depths.track_ratio('plain', 10)``."""
        return {
            f"{group.name}.{series.benchmark}({', '.join(map(repr, where))})": (series, group.cell(where))
            for group in self.groups
            for series in group.series
            for where in itertools.product(*group.axes.values())
        }

    def cells(self, series: Series, *, quick: bool) -> Iterator[HistoryCell]:
        """The cells at which a quick or a full point has ``series``, each once."""
        groups = [group for group in self.groups if series in group.series]
        for cell in dict.fromkeys(cell for group in groups for cell in group.cells):
            if not quick or (cell.depth <= series.quick and (series.judged is not Judged.TIMED or self.is_timed(cell))):
                yield cell

    def is_timed(self, cell: HistoryCell) -> bool:
        """Whether quick points time the cell."""
        if cell.block not in self.core:
            return False
        if cell.family == self.stacked and not cell.size:
            return cell.depth in DEEP
        return cell.family in self.timed or is_own(cell.family)
