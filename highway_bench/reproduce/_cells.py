"""Cells of reproductions that train, with a width matched to plain's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.cell import Cell, Match
from highway_bench.plan.matched import matched


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
    return matched(
        Cell(
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
    )
