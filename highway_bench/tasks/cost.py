"""Cost: what a network holds and what one item costs it, counted without computing anything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.measure.flops import count_flops, multiply_adds
from highway_bench.tasks.base import Measurement, Metric, Task, register_task
from highway_bench.tasks.from_cell import cell_family, count_parameters, dataset_options, started_network
from highway_bench.tasks.recipe_words import LAYOUT

SHAPES = torch.device("meta")  # tensors that have a shape and no numbers


@dataclass
class Blueprint:
    """A network and a batch of one item without their numbers. ``step`` is one forward pass."""

    network: nn.Module
    x: Tensor
    items: int = 1

    @property
    def params(self) -> int:
        return count_parameters(self.network)

    @cached_property
    def flops_per_item(self) -> float:
        """FLOP of one forward pass, a multiply-add is two."""
        return float(count_flops(self.step))

    def step(self) -> None:
        with torch.no_grad():
            self.network(self.x)

    def restore(self) -> None:
        """Nothing: there are no numbers that a step could change."""

    def close(self) -> None:
        """Nothing is held."""


@register_task
class Cost(Task[Blueprint]):
    """Parameters, and the multiply-adds of one item forward: matrix products and convolutions, biases and norms not.

    The network is built and run on tensors that have a shape and no storage, so that the largest published network is
    counted in seconds and without its memory. Tables of published networks call multiply-adds FLOPs.
    """

    name = "cost"
    version = "1"
    coordinates = ()
    recipe_words = LAYOUT
    metrics = (Metric("parameters", "1", "lower"), Metric("multiply_adds", "1", "lower"))

    def estimate(self, cell: Cell) -> float:
        return 0.3 + 0.03 * cell.depth

    def prepare(self, cell: Cell) -> Blueprint:
        with SHAPES:
            return Blueprint(started_network(cell).eval(), item_of(cell))

    def measure(self, work: Blueprint, cell: Cell) -> Iterable[Measurement]:
        yield Measurement(metric="parameters", value=float(work.params))
        yield Measurement(metric="multiply_adds", value=multiply_adds(work.flops_per_item))


def item_of(cell: Cell) -> Tensor:
    """A batch of one of what the cell's network takes: an item of its data set, its architecture or its family."""
    if cell.dataset is not None:
        dataset = make_dataset(cell.dataset, **dataset_options(cell))
        return torch.zeros(1, *dataset.input_shape, dtype=torch.int64 if dataset.input_kind == "tokens" else None)
    architecture = cell.recipe.get("layout")
    if architecture is not None:
        return torch.zeros(1, *architectures.get(architecture).inputs)
    return cell_family(cell).example(1, cell.width, seq_len=cell.seq_len)
