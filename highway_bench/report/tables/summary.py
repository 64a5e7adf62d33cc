"""The summary: depths, losses, times and costs, one row per block."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.report.descriptions import Descriptions
from highway_bench.report.ratio import NOT_TIMED
from highway_bench.report.rows import CONTEST, groups, recipe_of, rows_of
from highway_bench.report.tables.frontier import FRONTIER
from highway_bench.report.tables.matched_costs import ALIKE, at_one_size, measured_alike
from highway_bench.report.tables.trainability import Contests, able_blocks
from highway_bench.success.ladder import LEAST_SEEDS, NOT_RUN, TRAINS

AT_DEPTH = (
    "at_depth",
    "verdict",
    "final_loss",
    "loss_low",
    "loss_high",
    "seconds_to_threshold",
    "training_seconds",
    "params",
    "edge_rate",
)
COST = (
    "step_ratio",
    "ratio_low",
    "ratio_high",
    "ratio_depth",
    "ratio_width",
    "ratio_batch",
    "ratio_from",
    "ratio_gap",
    "bytes_per_layer",
    "bytes_depth",
    "bytes_width",
    "bytes_batch",
)
SETTING = (*ALIKE, "machine_label")
"""Columns that are equal within one table of costs without verdicts."""


def summary_table(
    contests: Contests, frontier: pd.DataFrame, ratios: pd.DataFrame, memory: pd.DataFrame, about: Descriptions
) -> pd.DataFrame:
    """The table of ``Results.summary``, from the values of its methods of these names."""
    counted = memory[memory["saved_per_layer"].notna()]
    frontiers = iter(rows_of(frontier))  # one row per contest and block, in this order
    records: list[dict[str, Any]] = []
    for contest, part in contests:
        depth = common_depth(part)
        able = able_blocks(part)
        alike = at_one_size(counted, contest, depth)
        here = {cell["block"]: cell for cell in rows_of(part[part["depth"] == depth])}
        steps = recipe_of(contest["recipe"]).get("steps", math.nan)
        for block in about.block_order(part["block"]):
            rung = here.get(block, {})
            record = {name: rung.get(name, math.nan) for name in AT_DEPTH}
            record |= {
                "at_depth": depth,
                "verdict": rung.get("verdict", NOT_RUN),
                "training_seconds": rung.get("step_seconds", math.nan) * steps,
                "edge_rate": rung["rate"] if block in able and rung.get("rate_at_edge") else math.nan,
            }
            cost = _cost(ratios, alike, contest, block, depth)
            reach = next(frontiers)
            records.append({**contest, "block": block, **{name: reach[name] for name in FRONTIER}, **record, **cost})
    records += _cost_only(ratios, counted, contests, about)
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


def _cost(
    timed: pd.DataFrame, counted: pd.DataFrame, contest: Mapping[str, Any], block: str, depth: float
) -> dict[str, Any]:
    """The step-time ratio and bytes per layer of ``block``, in the setting of ``contest`` nearest to ``depth``."""
    cost: dict[str, Any] = dict.fromkeys(COST, math.nan) | {"ratio_from": "", "ratio_gap": ""}
    alike = measured_alike(timed, contest, block, depth)
    if alike["ratio"].isna().all():
        cost["ratio_gap"] = alike["ratio_gap"].iloc[0] if len(alike) else NOT_TIMED if contest["recipe"] else ""
    for best in rows_of(alike[alike["ratio"].notna()].head(1)):
        cost |= {name: best[name] for name in ("ratio_low", "ratio_high")}
        cost |= {
            "step_ratio": best["ratio"],
            "ratio_depth": best["depth"],
            "ratio_width": best["nominal_width"],
            "ratio_batch": best["batch_size"],
            "ratio_from": best["phase"],
        }
    for best in rows_of(measured_alike(counted, contest, block, depth).head(1)):
        cost |= {
            "bytes_per_layer": best["saved_per_layer"],
            "bytes_depth": best["depth"],
            "bytes_width": best["nominal_width"],
            "bytes_batch": best["batch_size"],
        }
    return cost


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
        empty = dict.fromkeys([*CONTEST, *FRONTIER, *AT_DEPTH], None) | setting
        alike = at_one_size(counted, empty, depth)
        for block in about.block_order(here["block"]):
            own = here[here["block"] == block].sort_values("depth").iloc[-1]
            empty |= {"nominal_width": own["nominal_width"], "params": own["params"]}
            records.append(
                empty
                | {"block": block, "at_depth": depth, "verdict": NOT_RUN}
                | _cost(timed, alike, empty, block, depth)
            )
    return records
