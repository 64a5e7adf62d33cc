"""Cells of reproductions that train, with a width matched to plain's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.blocks import blocks
from highway_bench.cell import Cell, Match
from highway_bench.families import make_family
from highway_bench.matching import matched_width
from highway_bench.tasks.from_cell import positions_of


def trained(
    block: str,
    family: str,
    *,
    depth: int,
    nominal_width: int,
    batch_size: int,
    dataset: str,
    recipe: Mapping[str, Any],
    task: str = "trainability",
    match: Match = "params",
    **fields: Any,
) -> Cell:
    """A cell whose ``task`` trains. Its width gives ``block`` the budget (``match``) of plain at ``nominal_width``."""
    cell = Cell(
        task=task,
        block=block,
        family=family,
        depth=depth,
        width=nominal_width,
        nominal_width=nominal_width,
        match=match,
        batch_size=batch_size,
        dataset=dataset,
        recipe=recipe,
        **fields,
    )
    instance = make_family(family, **cell.family_options)
    width = matched_width(blocks.get(block), instance, nominal_width, match, positions=positions_of(instance, cell))
    return cell.but(width=width)
