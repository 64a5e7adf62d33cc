"""Cost: parameters of a network and multiply-adds of one item, counted without computing anything."""

from __future__ import annotations

import torch
from torch import Tensor

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.families.parts import count_parameters
from highway_bench.measure.flops import count_flops, multiply_adds
from highway_bench.tasks.architecture_network import LAYOUT, meta_network
from highway_bench.tasks.base import CellCost, Task, register_task
from highway_bench.tasks.from_cell import cell_dataset, cell_family
from highway_bench.tasks.measurement import Measurement, Metric, Outcome


@register_task
class Cost(Task):
    """Parameters, and multiply-adds of one item forward: matrix products and convolutions, without biases and norms.

    The network is built and run on tensors that have a shape and no storage, so the largest published network takes
    seconds and no memory. Tables of published networks call multiply-adds FLOPs.
    """

    name = "cost"
    version = "1"
    coordinates = ()
    recipe_words = LAYOUT
    metrics = (
        Metric("parameters", "1", "lower"),
        Metric("multiply_adds", "1", "lower", label="multiply-adds", hint="of the forward pass of one item"),
    )

    def cost(self, cell: Cell) -> CellCost:
        return CellCost(0.3 + 0.03 * cell.depth)  # no bytes: nothing is stored

    def measure_cell(self, cell: Cell) -> Outcome:
        """The counts of one cell's network."""
        network, x = meta_network(cell).eval(), item_of(cell)
        with torch.no_grad():
            flops = float(count_flops(lambda: network(x)))
        params = count_parameters(network)
        counted = (
            Measurement(metric="parameters", value=float(params)),
            Measurement(metric="multiply_adds", value=multiply_adds(flops)),
        )
        return Outcome(cell, counted, params, flops)


def item_of(cell: Cell) -> Tensor:
    """A batch with one input of the cell's network: of its data set, else of its architecture, else of its family.

    The tensor has a shape and no storage.
    """
    dataset, architecture = cell_dataset(cell), cell.recipe.get("layout")
    if dataset is not None:
        dtype = torch.int64 if dataset.input_kind == "tokens" else None
        return torch.empty(1, *dataset.input_shape, dtype=dtype, device="meta")
    if architecture is not None:
        return torch.empty(1, *architectures.get(architecture).inputs, device="meta")
    return cell_family(cell).example(1, cell.width, seq_len=cell.seq_len).to("meta")
