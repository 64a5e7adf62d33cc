"""A row a block: how deep it trains, how fast, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.report.ratio import NOT_TIMED
from highway_bench.report.rows import (
    CONTEST,
    block_order,
    family_order,
    groups,
    prepared,
    recipe_of,
    rows_of,
)
from highway_bench.report.tables.cost import ALIKE, at_one_size, measured_alike
from highway_bench.report.tables.frontier import frontier
from highway_bench.report.tables.memory import memory_table
from highway_bench.report.tables.throughput import throughput_table, to_quote
from highway_bench.report.tables.trainability import able_blocks, contests, trainability_table
from highway_bench.success import LEAST_SEEDS, NOT_RUN, TRAINS

FRONTIER = ("l_max", "l_max_censored", "l50", "l50_low", "l50_high", "l50_censored", "area", "provisional", "limited")
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


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a block of every contest with verdicts; where nothing was trained, a row a block and family.

    Columns: ``CONTEST``, ``block``; ``FRONTIER`` (see ``frontier``); ``AT_DEPTH`` at ``at_depth``, the deepest depth at
    which some block trains (the shallowest where none does), so that blocks are compared where they all stand; with
    ``edge_rate`` the tuned rate where it is at the edge of those tried and the block trains with any seed at any depth;
    ``COST``: step time over plain's and bytes a layer, of cells measured alike (see ``ALIKE``) at the depth nearest to
    it, with the depth, plain's width and batch of these cells and ``ratio_from`` naming what was timed, or in
    ``ratio_gap`` why there is no ratio. Seconds, bytes.
    """
    frame = prepared(rows)
    ladder = list(contests(trainability_table(frame)))
    timed, kept = to_quote(throughput_table(frame)), memory_table(frame)
    kept = kept[kept["saved_per_layer"].notna()]
    records: list[dict[str, Any]] = []
    for contest, part in ladder:
        depth = common_depth(part)
        able = able_blocks(part)
        counted = at_one_size(kept, contest, depth)
        here = {cell["block"]: cell for cell in rows_of(part[part["depth"] == depth])}
        for block in block_order(part["block"]):
            rung = here.get(block, {})
            steps = recipe_of(contest["recipe"]).get("steps", math.nan)
            found = {name: rung.get(name, math.nan) for name in AT_DEPTH}
            found |= {
                "at_depth": depth,
                "verdict": rung.get("verdict", NOT_RUN),
                "training_seconds": rung.get("step_seconds", math.nan) * steps,
                "edge_rate": rung["rate"] if block in able and rung.get("rate_at_edge") else math.nan,
            }
            cost = _cost(timed, counted, contest, block, depth)
            records.append({**contest, "block": block, **frontier(part, block), **found, **cost})
    if not ladder:
        records = _without_ladder(timed, kept)
    return _limited(pd.DataFrame(records, columns=[*CONTEST, "block", *FRONTIER, *AT_DEPTH, *COST]))


def common_depth(part: pd.DataFrame) -> int:
    """The deepest depth of a contest at which some block trains, or else the shallowest."""
    trained = part.loc[part["verdict"] == TRAINS, "depth"]
    if trained.empty and (part["n"] < LEAST_SEEDS).all():  # too few seeds for verdicts: where most seeds succeed
        trained = part.loc[part["k"] * 2 > part["n"], "depth"]
    return int(trained.max() if len(trained) else part["depth"].min())


def _limited(table: pd.DataFrame) -> pd.DataFrame:
    """Mark as ``limited`` by the budget a frontier that the same contest with other steps puts elsewhere."""
    recipes = table["recipe"].map(recipe_of)
    rest = recipes.map(lambda recipe: canonical({name: value for name, value in recipe.items() if name != "steps"}))
    keys = [*(name for name in CONTEST if name != "recipe"), "block"]
    for _, part in table.assign(rest=rest, steps=recipes.map(lambda recipe: recipe.get("steps"))).groupby(
        [*keys, "rest"], dropna=False
    ):
        frontiers = part[["l_max", "l_max_censored"]].drop_duplicates()
        table.loc[part.index, "limited"] = len(set(part["steps"])) > 1 and len(frontiers) > 1
    return table


def _cost(
    timed: pd.DataFrame, kept: pd.DataFrame, contest: Mapping[str, Any], block: str, depth: float
) -> dict[str, Any]:
    """What a step and a layer of ``block`` cost in cells measured alike, at the measured depth nearest to ``depth``."""
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
    for best in rows_of(measured_alike(kept, contest, block, depth).head(1)):
        cost |= {
            "bytes_per_layer": best["saved_per_layer"],
            "bytes_depth": best["depth"],
            "bytes_width": best["nominal_width"],
            "bytes_batch": best["batch_size"],
        }
    return cost


def _without_ladder(timed: pd.DataFrame, kept: pd.DataFrame) -> list[dict[str, Any]]:
    """A row a block of every set of cells that were measured alike (see ``ALIKE``), families in their order."""
    shared = [*ALIKE, "machine_label"]
    measured = pd.concat(
        [table[[*shared, "block", "depth", "params", "nominal_width", "batch_size"]] for table in (timed, kept)]
    )
    families = family_order(measured["family_label"])
    records: list[dict[str, Any]] = []
    for alike, here in sorted(groups(measured, shared), key=lambda item: families.index(item[0]["family_label"])):
        depth = here["depth"].max()
        empty = dict.fromkeys([*CONTEST, *FRONTIER, *AT_DEPTH], None) | alike
        counted = at_one_size(kept, empty, depth)
        for block in block_order(here["block"]):
            own = here[here["block"] == block].sort_values("depth").iloc[-1]
            empty |= {"nominal_width": own["nominal_width"], "params": own["params"]}
            records.append(
                empty
                | {"block": block, "at_depth": depth, "verdict": NOT_RUN}
                | _cost(timed, counted, empty, block, depth)
            )
    return records
