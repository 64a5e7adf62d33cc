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

SAVED_PER_CONNECTION = 2  # maps saved for the backward pass apart from those of transform and gates: input, product
SAVED_PER_GATE = 2  # the gate before and after its sigmoid
TAPS = 9  # of a 3 × 3 kernel: weights of a convolution per output and input feature


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
    """Approximate bytes of ``cell``'s network and one step of it, without the process and its libraries.

    Counted are weights, with a backward pass also gradients and an optimiser's state, and the maps saved for the
    backward pass, at every position of every item of the batch. A forward pass alone holds one layer's maps at a time.
    Networks that train as one count once each.
    """
    family, spec = make_family(cell.family, **cell.family_options), blocks.get(cell.block)
    item = DTYPES[cell.dtype].itemsize
    weights = spec.stack_parameters(family, cell.width, cell.depth)
    saved = [
        saved_features(part, cell.width)
        + (SAVED_PER_CONNECTION + SAVED_PER_GATE * spec.gates + spec.norms) * cell.width
        for part in family.sublayers
    ]
    backward = cell.phase != "forward"
    layers = cell.depth if backward else 1
    copies = 4 if backward else 1  # weights, gradients, momentum, and the initial state that timing restores
    numbers = copies * weights + layers * sum(saved) * cell.batch_size * positions_of(family, cell)
    return round(item * numbers) * tasks.get(cell.task).at_once(cell)


def saved_features(part: Transform, width: int) -> float:
    """Features that one transform computes at each position: a weight matrix gives one per row."""
    taps = TAPS if part.kind == "image" else 1
    return part.transform_parameters(width) / (width * taps)
