"""The depths to which a block trains, from a ladder of depths: L_max, L50 and the area under the success rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import CONTEST, one_of, recipe_of, rows_of
from highway_bench.frames.trainability import Contests
from highway_bench.success.ladder import FEW, NO_VERDICT, Success, area_under_success, l50, l_max

FRONTIER: Final = (
    "start",
    "shallowest",
    "l_max",
    "l_max_censored",
    "l50",
    "l50_low",
    "l50_high",
    "l50_censored",
    "area",
    "provisional",
    "limited",
)


def frontier_table(contests: Contests, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.frontier``."""
    records = [
        {**contest, "block": block, **_frontier(part, block)}
        for contest, part in contests
        for block in about.block_order(part["block"])
    ]
    return _limited(pd.DataFrame(records, columns=[*CONTEST, "block", *FRONTIER]))


def _limited(table: pd.DataFrame) -> pd.DataFrame:
    """Mark a frontier as ``limited`` by the budget if it differs in the same contest with another number of steps."""
    recipes = table["recipe"].map(recipe_of)
    rest = recipes.map(lambda recipe: canonical({name: value for name, value in recipe.items() if name != "steps"}))
    keys = [*(name for name in CONTEST if name != "recipe"), "block"]
    for _, part in table.assign(rest=rest, steps=recipes.map(lambda recipe: recipe.get("steps"))).groupby(
        [*keys, "rest"], dropna=False
    ):
        frontiers = part[["l_max", "l_max_censored"]].drop_duplicates()
        table.loc[part.index, "limited"] = len(set(part["steps"])) > 1 and len(frontiers) > 1
    return table


def _frontier(part: pd.DataFrame, block: str) -> dict[str, Any]:
    """The frontier of ``block``, from the rows ``part`` of the trainability table.

    For ``l_max`` an unfinished run counts as a failure. All NaN if seeds are too few or no run finished.
    """
    rungs = part[(part["block"] == block) & (part["n"] + part["unfinished"] > 0)]
    nothing = dict.fromkeys(("shallowest", "l_max", "l50", "l50_low", "l50_high", "area"), math.nan)
    nothing |= {"start": one_of(part.loc[part["block"] == block, "start"])}
    empty = nothing | {"l_max_censored": "", "l50_censored": "", "provisional": False, "limited": False}
    if not rungs["n"].any() or rungs["verdict"].isin([FEW, NO_VERDICT]).any():
        return empty
    cells = [{name: int(cell[name]) for name in ("depth", "k", "n", "unfinished")} for cell in rows_of(rungs)]
    rule = l_max({cell["depth"]: (cell["k"], cell["n"] + cell["unfinished"]) for cell in cells})
    success = {cell["depth"]: (cell["k"], cell["n"]) for cell in cells if cell["n"]}
    fit = l50(success)
    return {
        "start": nothing["start"],
        "shallowest": float(rule.shallowest),
        "l_max": math.nan if rule.value is None else float(rule.value),
        "l_max_censored": rule.censored or "",
        "l50": fit.value,
        "l50_low": fit.low,
        "l50_high": fit.high,
        "l50_censored": fit.censored or "",
        "area": _area(success, [int(depth) for depth in part["depth"].unique()]),
        "provisional": rule.provisional,
        "limited": False,
    }


def _area(success: Success, ladder: Sequence[int]) -> float:
    """The area under the success rate over the whole ``ladder``, so that blocks are comparable.

    If no seed trained at the deepest depth tried, greater depths count as failures too; otherwise the area is NaN.
    """
    deepest = max(success)
    untried = {depth: (0, 1) for depth in ladder if depth > deepest}
    return math.nan if untried and success[deepest][0] else area_under_success({**success, **untried})
