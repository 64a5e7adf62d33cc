"""Which training runs become one population: cells of one shape, where one stacked network is faster than one by one.

What decides was measured. A CPU core gains where a network alone is too small to keep it busy, which is many small
matrix products: vector families of moderate width (1.6 times as many trials at 50 layers of 50 units, 1.2 at 128 units,
none at 256). Convolutions, attention and recurrent layers gain nothing there. A GPU gains with everything that ``vmap``
can run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from highway_bench.cell import Cell
from highway_bench.tasks.from_cell import cell_family, cell_spec
from highway_bench.tasks.recipe_words import value_of
from highway_bench.training.checkpoint import CheckpointFolder

ON_CPU = 16  # networks in one stack on a CPU core: with more, a layer's activations leave its cache
LARGEST = 1e7  # FLOP of a layer's forward pass on a batch, above which one network keeps a CPU core busy by itself
OWN = ("rate", "momentum", "decay", "weight_decay")  # of a recipe: each member's own


def most_together(cell: Cell) -> int:
    """How many runs may train as one, by the cell's recipe; raises ``BadInput`` for what is no such number."""
    return int(value_of(cell, "together", 1))


def one_by_one(cell: Cell) -> str | None:
    """Why runs of this shape train by themselves; ``None`` where they train as one."""
    family, spec = cell_family(cell), cell_spec(cell)
    if not (family.vmap and spec.vmap):
        return "declared as not running under vmap"
    if cell.device == "cpu" and family.kind != "vector":
        return f"{family.kind}s are no faster together on a CPU"
    if cell.device == "cpu" and spec.layer_flops(family, cell.width, positions=1) * cell.batch_size > LARGEST:
        return "layers as large as these are no faster together on a CPU"
    return None


def at_once(cell: Cell) -> int:
    """How many networks a worker that measures ``cell`` holds at once, at most."""
    most = most_together(cell)
    if most == 1 or one_by_one(cell) is not None:
        return 1
    return most if cell.device != "cpu" else min(most, ON_CPU)


def shape(cell: Cell) -> Cell:
    """What is the same in all runs that may train as one: ``cell`` without what is each one's own."""
    recipe = {name: value for name, value in cell.recipe.items() if name not in OWN}
    options = {name: value for name, value in cell.block_options.items() if name != "gate_bias"}
    return cell.but(recipe=recipe, block_options=options, seed=0, trial=None)


def stacks(cells: Sequence[Cell], kept: CheckpointFolder | None) -> Iterator[list[Cell]]:
    """``cells``, of one group, in stacks of a size that the device is quick with; those that were being trained as one
    when they were interrupted stay so."""
    for part in kept.by_file(cells) if kept is not None else [list(cells)]:
        most = len(part) if part[0].device != "cpu" else ON_CPU
        size = math.ceil(len(part) / math.ceil(len(part) / most))
        yield from (part[start : start + size] for start in range(0, len(part), size))
