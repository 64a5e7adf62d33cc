"""Bytes that a network and one step of it need, from closed forms: nothing is built."""

from __future__ import annotations

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.families import Transform
from highway_bench.tasks.from_cell import TORCH_DTYPES, cell_family, positions_of

KEPT_A_JOIN = 2  # maps of a join kept for the backward pass besides those of its transform and gates: input, product
KEPT_A_GATE = 2  # the gate before and after its sigmoid
TAPS = 9  # of a 3 × 3 kernel: each output feature of a convolution has so many weights an input feature


def network_bytes(cell: Cell) -> int:
    """Bytes that one network of ``cell`` and one step of it need, roughly; the process and its libraries aside.

    Weights, and with a backward pass gradients and an optimiser's state; then, at every position and for every item of
    the batch, the maps that are kept until the backward pass. A forward pass keeps one layer's at a time.
    """
    family, spec = cell_family(cell), blocks.get(cell.block)
    joins = [
        kept_features(part, cell.width) + (KEPT_A_JOIN + KEPT_A_GATE * spec.gates + spec.norms) * cell.width
        for part in family.sublayers
    ]
    backward = cell.phase != "forward"
    layers = cell.depth if backward else 1
    copies = 4 if backward else 1  # weights, gradients, momentum, and the start that timing goes back to
    weights = copies * spec.stack_parameters(family, cell.width, cell.depth)
    numbers = weights + layers * sum(joins) * cell.batch_size * positions_of(family, cell)
    return round(TORCH_DTYPES[cell.dtype].itemsize * numbers)


def kept_features(part: Transform, width: int) -> float:
    """Features that one transform makes at each position: a weight matrix of the width makes as many as it has rows."""
    taps = TAPS if part.kind == "image" else 1
    return part.transform_parameters(width) / (width * taps)
