"""The summary: depths, losses, times and costs, one row per block. All values of a row are of one depth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.rows import CONTEST, groups, recipe_of, rows_of
from highway_bench.report.tables.costs import ALIKE, COST, costs_at
from highway_bench.report.tables.frontier import FRONTIER
from highway_bench.report.tables.trainability import Contests
from highway_bench.success.ladder import LEAST_SEEDS, NOT_RUN, TRAINS

AT_DEPTH = (
    "at_depth",
    "verdict",
    "final_loss",
    "loss_low",
    "loss_high",
    "test_accuracy",
    "seconds_to_threshold",
    "training_seconds",
    "params",
    "edge_rate",
)
SETTING = (*ALIKE, "machine_label")
"""Columns that are equal within one table of costs without verdicts."""


def summary_table(
    contests: Contests,
    frontier: pd.DataFrame,
    costs: pd.DataFrame,
    timed: pd.DataFrame,
    memory: pd.DataFrame,
    about: Descriptions,
) -> pd.DataFrame:
    """The table of ``Results.summary``, from the values of its methods of these names; ``timed`` are the ratios of the
    phase in which costs are compared."""
    frontiers = iter(rows_of(frontier))  # one row per contest and block, in this order
    records: list[dict[str, Any]] = []
    priced = {_key(cost): cost for cost in rows_of(costs)}
    for contest, part in contests:
        depth = common_depth(part)
        here = {cell["block"]: cell for cell in rows_of(part[part["depth"] == depth])}
        steps = recipe_of(contest["recipe"]).get("steps", math.nan)
        for block in about.block_order(part["block"]):
            rung = here.get(block, {})
            record = {name: rung.get(name, math.nan) for name in AT_DEPTH}
            record |= {
                "at_depth": depth,
                "verdict": rung.get("verdict", NOT_RUN),
                "training_seconds": rung.get("step_seconds", math.nan) * steps,
                "edge_rate": rung["rate"] if rung.get("edge") else math.nan,
            }
            cost = priced[_key({**contest, "block": block, "depth": depth})]
            reach = next(frontiers)
            record |= {name: reach[name] for name in FRONTIER} | {name: cost[name] for name in COST}
            records.append({**contest, "block": block, **record})
    records += _cost_only(timed, memory[memory["saved_per_layer"].notna()], contests, about)
    return pd.DataFrame(records, columns=[*CONTEST, "block", *FRONTIER, *AT_DEPTH, *COST])


def common_depth(part: pd.DataFrame) -> int:
    """The deepest depth of a contest at which a block trains, or else the shallowest depth.

    If all depths have too few seeds for a verdict, a block trains where more than half of its seeds succeed.
    """
    trained = part.loc[part["verdict"] == TRAINS, "depth"]
    if trained.empty and (part["n"] < LEAST_SEEDS).all():
        trained = part.loc[part["k"] * 2 > part["n"], "depth"]
    return int(trained.max() if len(trained) else part["depth"].min())


def without_contest(table: pd.DataFrame, contests: Contests) -> pd.DataFrame:
    """The rows of ``table`` whose block was not trained for a verdict in their setting, ``ALIKE``."""
    trained = {
        (*(contest[name] for name in ALIKE), block) for contest, part in contests for block in set(part["block"])
    }
    keys = zip(*(table[name] for name in (*ALIKE, "block")), strict=True)
    return table[np.array([key not in trained for key in keys], dtype=bool)]


def _key(cell: dict[str, Any]) -> tuple[Any, ...]:
    values = (cell[name] for name in (*CONTEST, "block", "depth"))
    return tuple(None if value != value else value for value in values)


def _cost_only(
    timed: pd.DataFrame, counted: pd.DataFrame, contests: Contests, about: Descriptions
) -> list[dict[str, Any]]:
    """One row per setting and block that was timed or counted there, but not trained for a verdict."""
    sizes = [*SETTING, "block", "depth", "params", "nominal_width", "batch_size"]
    measured = without_contest(pd.concat([table[sizes] for table in (timed, counted)]), contests)
    families = about.family_order(measured["family_label"])
    records: list[dict[str, Any]] = []
    for setting, here in sorted(groups(measured, SETTING), key=lambda item: families.index(item[0]["family_label"])):
        depth = here["depth"].max()
        blocks = about.block_order(here["block"])
        empty = dict.fromkeys([*CONTEST, *FRONTIER, *AT_DEPTH], None) | setting
        empty |= {"at_depth": depth, "verdict": NOT_RUN}
        for block, cost in costs_at(empty, depth, blocks, timed, counted).items():
            own = here[(here["block"] == block) & here["depth"].eq(depth)]
            sized = {"nominal_width": own["nominal_width"].max(), "params": own["params"].max()}
            records.append(empty | sized | {"block": block} | cost)
    return records
