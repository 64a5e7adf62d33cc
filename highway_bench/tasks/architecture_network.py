"""The network of a cell whose recipe may name an architecture (``layout``).

Only tasks that have this word import this module, so cells of other tasks do not depend on architectures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, near_names
from highway_bench.network import check_causal, started
from highway_bench.tasks.from_cell import (
    cell_dataset,
    cell_family,
    cell_spec,
    on_device,
    skip_incompatible,
    started_stack,
)
from highway_bench.words import Word, either, mapping

DATASET: Mapping[str, Word] = {  # of tasks whose networks read a data set
    "dataset": mapping("the data set's options by name").meaning("Options of the data set, by name."),
}


class ArchitectureName(Word):
    """The name of an architecture."""

    def check(self, name: str, value: Any) -> None:
        """As of any word; the message about an unknown architecture lists near names."""
        if isinstance(value, str) and not self.holds(value):
            near = near_names(value, architectures)
            raise BadInput(f"a recipe's {name} must be {self.says}, not {value!r}; {near}")
        super().check(name, value)


NAME = ArchitectureName(
    "the name of an architecture", lambda value: isinstance(value, str) and value in architectures, type="name"
)
LAYOUT: Mapping[str, Word] = {
    "layout": either(NAME, None).meaning(
        "The published network that contains the layers; none for the usual stem and head."
    ),
}
ON_DATA: Mapping[str, Word] = {**LAYOUT, **DATASET}


def cell_network(cell: Cell) -> nn.Module:
    """The cell's network on its device, in its dtype: its recipe's architecture, else ``cell_stack``.

    Raises ``Skip`` where the architecture cannot have the family or read the data set.
    """
    return on_device(started_network(cell), cell)


def meta_network(cell: Cell) -> nn.Module:
    """``cell_network`` in tensors with a shape and no storage, in float32: neither time nor memory, at any depth.

    Raises what ``cell_network`` raises.
    """
    dataset = cell_dataset(cell)
    if dataset is not None:  # what it reads now it caches, so that the cached tensors have storage
        _ = dataset.input_shape, dataset.outputs, dataset.vocabulary
    with torch.device("meta"):
        return started_network(cell)


@skip_incompatible()
def started_network(cell: Cell) -> nn.Module:
    """``cell_network`` before it is moved: on torch's default device, in float32."""
    layout = cell.recipe.get("layout")
    if layout is None:
        return started_stack(cell)
    dataset = cell_dataset(cell)
    options, family = started(cell_spec(cell), cell_family(cell), cell.block_options, cell.start)
    if dataset is not None:
        check_causal(dataset, cell_spec(cell), family, cell.width, options)
    return architectures.get(layout).build(
        cell.block,
        family,
        width=cell.width,
        depth=cell.depth,
        options=options,
        inputs=dataset.input_shape if dataset else None,
        outputs=dataset.outputs if dataset else None,
        seed=cell.seed,
    )
