"""Estimated bytes of a network and of one step of it, from closed forms. No network is built."""

from __future__ import annotations

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.families import Transform
from highway_bench.tasks.from_cell import TORCH_DTYPES, cell_family, positions_of

SAVED_PER_CONNECTION = 2  # maps saved for the backward pass besides those of transform and gates: input, product
SAVED_PER_GATE = 2  # the gate before and after its sigmoid
TAPS = 9  # of a 3 × 3 kernel: weights of a convolution for each pair of an input and an output feature


def network_bytes(cell: Cell) -> int:
    """Roughly the bytes of one network of ``cell`` and one step of it, without those of the process and its libraries.

    The sum has the weights and, with a backward pass, gradients and the optimiser's state. It also has the maps that
    are saved for the backward pass, at every position of every item of the batch. A forward pass alone holds those of
    one layer at a time.
    """
    family, spec = cell_family(cell), blocks.get(cell.block)
    features = [
        saved_features(part, cell.width)
        + (SAVED_PER_CONNECTION + SAVED_PER_GATE * spec.gates + spec.norms) * cell.width
        for part in family.sublayers
    ]
    backward = cell.phase != "forward"
    layers = cell.depth if backward else 1
    copies = 4 if backward else 1  # weights, gradients, momentum, and the starting weights that timing restores
    weights = copies * spec.stack_parameters(family, cell.width, cell.depth)
    numbers = weights + layers * sum(features) * cell.batch_size * positions_of(family, cell)
    return round(TORCH_DTYPES[cell.dtype].itemsize * numbers)


def saved_features(part: Transform, width: int) -> float:
    """Features that one transform computes at each position: its parameters, divided by the weights of one feature."""
    taps = TAPS if part.kind == "image" else 1
    return part.transform_parameters(width) / (width * taps)
