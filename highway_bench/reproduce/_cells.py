"""Cells of reproductions that train, with a width matched to plain's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.cell import Cell, Match
from highway_bench.plan.matched import matched
from highway_bench.success.judging import THRESHOLD


def sgd(steps: int, **words: Any) -> dict[str, Any]:
    """The recipe of SGD with momentum 0.9, whose rate falls to a tenth."""
    return {
        "optimiser": "sgd",
        "momentum": 0.9,
        "decay": 0.1,
        "steps": steps,
        "threshold": THRESHOLD,
    } | words


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
