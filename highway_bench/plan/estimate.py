"""Estimate: time and memory of a run, from closed forms: no network is built, nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.execution.backlog import Backlog
from highway_bench.execution.progress import TimeLeft
from highway_bench.families import Transform, make_family
from highway_bench.results.store import Store
from highway_bench.tasks import tasks
from highway_bench.tasks.from_cell import DTYPES, positions_of

KEPT_A_JOIN = 2  # maps of a join kept for the backward pass besides those of its transform and gates: input, product
KEPT_A_GATE = 2  # the gate before and after its sigmoid
TAPS = 9  # of a 3 × 3 kernel: each output feature of a convolution has so many weights an input feature


@dataclass(frozen=True)
class Estimate:
    """All ``cells`` of a run, trials of searches included, and how many of them are ``stored`` already.

    ``seconds`` is the time for the cells that are not stored, ``bytes`` the memory for the largest of these.
    """

    cells: tuple[Cell, ...]
    stored: int
    seconds: float
    bytes: int


def estimate(cells: Mapping[Cell, tuple[Cell, ...]], store: Store, *, workers: int, resume: bool = True) -> Estimate:
    """The cost of ``run_cells``; ``cells`` maps each cell to the cells it needs. Nothing is written into ``store``."""
    backlog = Backlog(store, resume)
    backlog.add(cells)
    backlog.ready()
    left = [item for item in backlog.items.values() if item.status is None]
    return Estimate(
        tuple(backlog.items),
        len(backlog.items) - len(left),
        TimeLeft(left, workers).seconds,
        max((cell_bytes(item.cell) for item in left), default=0),
    )


def cell_bytes(cell: Cell) -> int:
    """Bytes that ``cell`` needs for its network and one step of it, roughly; the process and its libraries aside.

    Weights, and with a backward pass gradients and an optimiser's state; then, at every position and for every item of
    the batch, the maps that are kept until the backward pass. A forward pass keeps one layer's at a time. Networks that
    train as one count as many times as a stack has of them.
    """
    family, spec = make_family(cell.family, **cell.family_options), blocks.get(cell.block)
    item = DTYPES[cell.dtype].itemsize
    weights = spec.stack_parameters(family, cell.width, cell.depth)
    joins = [
        kept_features(part, cell.width) + (KEPT_A_JOIN + KEPT_A_GATE * spec.gates + spec.norms) * cell.width
        for part in family.sublayers
    ]
    backward = cell.phase != "forward"
    layers = cell.depth if backward else 1
    copies = 4 if backward else 1  # weights, gradients, momentum, and the start that timing goes back to
    numbers = copies * weights + layers * sum(joins) * cell.batch_size * positions_of(family, cell)
    return round(item * numbers) * tasks.get(cell.task).at_once(cell)


def kept_features(part: Transform, width: int) -> float:
    """Features that one transform makes at each position: a weight matrix of the width makes as many as it has rows."""
    taps = TAPS if part.kind == "image" else 1
    return part.transform_parameters(width) / (width * taps)
