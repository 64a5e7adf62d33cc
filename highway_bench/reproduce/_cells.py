"""What the reproductions' cells have in common: a width that is matched to plain's, and trained networks."""

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
    match: Match = "params",
    **fields: Any,
) -> Cell:
    """A trainability cell whose width gives ``block`` the budget that plain has at ``nominal_width``."""
    cell = Cell(
        task="trainability",
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
    made = make_family(family, **cell.family_options)
    width = matched_width(blocks.get(block), made, nominal_width, match, positions=positions_of(made, cell))
    return cell.but(width=width)
