"""Populations: which cells train together as one stacked network, and how many.

A population stacks the parameters of several networks of one shape and trains them with ``torch.func.vmap``; each
network is a member, with its own hyper-parameters and seed. It gives the same results as training one by one, and it is
used only where it was measured to be faster:

- On a CPU core, one network must be too small to keep the core busy. Those are vector families of moderate width: 1.2
  to 1.5 times as many trials a minute at 50 layers of 50 units (docs/results/tool.md), no gain at 256. Convolutions,
  attention and recurrent layers gain nothing.
- On a GPU, everything that ``vmap`` can run gains. A population that lacks memory there is halved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks.base import value_of
from highway_bench.tasks.from_cell import cell_family, cell_spec
from highway_bench.training.checkpoint import CheckpointFolder

MEMBERS_ON_CPU = 16  # of one population on a CPU core: with more, a layer's activations leave the cache
BUSY_LAYER_FLOPS = 1e7  # of a layer's forward pass on a batch: above it, one network keeps a CPU core busy
MEMBER_WORDS = ("rate", "momentum", "decay", "weight_decay")  # recipe words whose values may differ between members


def population_limit(cell: Cell) -> int:
    """How many runs may train as one population: ``together`` in the cell's recipe, 1 by default.

    Raises ``BadInput`` for a value that is no whole number of at least 1.
    """
    return int(value_of(cell, "together", 1))


def check_population(cell: Cell) -> None:
    """Raise ``BadInput`` where the cell's recipe asks for a population of a family that trains alone."""
    if population_limit(cell) > 1 and cell_family(cell).trains_alone:
        raise BadInput(
            f"family {cell.family!r} has batch norms, whose running statistics no population keeps apart: leave "
            f"together out of the recipe"
        )


def reason_to_train_alone(cell: Cell) -> str | None:
    """Why runs of this cell's shape do not train as the population that its recipe asks for (``together`` above 1).

    ``None`` where they do, and where the recipe asks for none.
    """
    if population_limit(cell) == 1:
        return None
    if cell.recipe.get("loss") is not None:
        return "its loss is the user's own"
    family, spec = cell_family(cell), cell_spec(cell)
    if not (family.vmap and spec.vmap):
        return "declared as not running under vmap"
    if cell.device == "cpu" and family.kind != "vector":
        return f"{family.kind}s are no faster together on a CPU"
    if cell.device == "cpu" and spec.layer_flops(family, cell.width, positions=1) * cell.batch_size > BUSY_LAYER_FLOPS:
        return "layers as large as these are no faster together on a CPU"
    return None


def networks_in_memory(cell: Cell) -> int:
    """How many networks a worker that measures ``cell`` holds in memory at the same time, at most."""
    if reason_to_train_alone(cell) is not None:
        return 1
    limit = population_limit(cell)
    return limit if cell.device != "cpu" else min(limit, MEMBERS_ON_CPU)


def shared_shape(cell: Cell) -> Cell:
    """``cell`` without the values that may differ between members (hyper-parameters, gate bias, seed, trial).

    Two cells may train in one population where this is equal for both.
    """
    recipe = {name: value for name, value in cell.recipe.items() if name not in MEMBER_WORDS}
    options = {name: value for name, value in cell.block_options.items() if name != "gate_bias"}
    return cell.but(recipe=recipe, block_options=options, seed=0, trial=None)


def populations_of(cells: Sequence[Cell], checkpoints: CheckpointFolder | None) -> Iterator[list[Cell]]:
    """``cells`` of one group, split into populations of nearly equal size: at most ``MEMBERS_ON_CPU`` on a CPU, all of
    them on a GPU. Cells whose population was interrupted stay together, because they share a checkpoint."""
    for part in checkpoints.by_file(cells) if checkpoints is not None else [list(cells)]:
        most = len(part) if part[0].device != "cpu" else MEMBERS_ON_CPU
        size = math.ceil(len(part) / math.ceil(len(part) / most))
        yield from (part[start : start + size] for start in range(0, len(part), size))
