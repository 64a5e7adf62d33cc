"""A row a block: how deep it trains, how fast, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from highway_bench.cell import canonical
from highway_bench.report.frame import CONTEST, YARDSTICK, block_order, family_order, prepared, recipe_of, rows_of
from highway_bench.report.tables.frontier import frontier
from highway_bench.report.tables.memory import memory_table
from highway_bench.report.tables.throughput import throughput_table
from highway_bench.report.tables.trainability import NOT_RUN, PROVISIONAL, TRAINS, contests, trainability_table

PHASES = ("train-step", "forward-backward", "forward")
FRONTIER = ("l_max", "l_max_censored", "l50", "l50_low", "l50_high", "l50_censored", "provisional", "limited")
AT_DEPTH = (
    "at_depth",
    "verdict",
    "final_loss",
    "loss_low",
    "loss_high",
    "seconds_to_threshold",
    "training_seconds",
    "params",
)
COST = ("step_ratio", "ratio_low", "ratio_high", "ratio_depth", "ratio_from", "bytes_per_layer", "bytes_depth")

Record = dict[str, Any]


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a block of every contest with verdicts; where nothing was trained, a row a block and family.

    Columns: ``CONTEST``, ``block``; ``FRONTIER`` (see ``frontier``); ``AT_DEPTH`` at ``at_depth``, the deepest depth at
    which some block trains (the shallowest where none does), so that blocks are compared where they all stand;
    ``COST``: step time over plain's and bytes a layer in that family, counted at the measured depth nearest to it,
    with ``ratio_from`` naming what was timed. Seconds and bytes.
    """
    frame = prepared(rows)
    ladder = list(contests(trainability_table(frame)))
    timed, kept = throughput_table(frame), memory_table(frame)
    records: list[dict[str, Any]] = []
    for contest, part in ladder:
        depth = common_depth(part)
        here = {cell["block"]: cell for cell in rows_of(part[part["depth"] == depth])}
        for block in block_order(part["block"]):
            rung = here.get(block, {})
            steps = recipe_of(contest["recipe"]).get("steps", math.nan)
            found = {name: rung.get(name, math.nan) for name in AT_DEPTH}
            found |= {
                "at_depth": depth,
                "verdict": rung.get("verdict", NOT_RUN),
                "training_seconds": rung.get("step_seconds", math.nan) * steps,
            }
            cost = _cost(timed, kept, contest["family_label"], block, depth)
            if math.isnan(cost["step_ratio"]):
                cost |= _from_training(here, block, depth)
            records.append({**contest, "block": block, **frontier(part, block), **found, **cost})
    if not ladder:
        records = _without_ladder(timed, kept)
    return _limited(pd.DataFrame(records, columns=[*CONTEST, "block", *FRONTIER, *AT_DEPTH, *COST]))


def common_depth(part: pd.DataFrame) -> int:
    """The deepest depth of a contest at which some block trains, or else the shallowest."""
    trained = part.loc[part["verdict"] == TRAINS, "depth"]
    if trained.empty and (part["n"] < PROVISIONAL).all():  # too few seeds for verdicts: where most seeds succeed
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


def _cost(timed: pd.DataFrame, kept: pd.DataFrame, family: object, block: str, depth: float) -> dict[str, Any]:
    """What a step and a layer of ``block`` cost in ``family``, at the measured depth nearest to ``depth``."""
    cost: dict[str, Any] = dict.fromkeys(COST, math.nan) | {"ratio_from": ""}
    own = timed[(timed["family_label"] == family) & (timed["block"] == block) & timed["ratio"].notna()]
    own = own.assign(
        away=(own["depth"] - depth).abs(),
        late=own["phase"].map(PHASES.index),
        slow=(own["mode"] != "eager").astype(int),
    )
    if len(own):
        best = own.sort_values(["slow", "away", "late"], kind="stable").iloc[0]
        how = best["phase"] if best["paired"] else f"{best['phase']}, not paired"
        cost |= {
            "step_ratio": best["ratio"],
            "ratio_low": best["ratio_low"],
            "ratio_high": best["ratio_high"],
            "ratio_depth": best["depth"],
            "ratio_from": how,
        }
    own = kept[(kept["family_label"] == family) & (kept["block"] == block) & kept["saved_per_layer"].notna()]
    if len(own):
        best = own.assign(away=(own["depth"] - depth).abs()).sort_values("away", kind="stable").iloc[0]
        cost |= {"bytes_per_layer": best["saved_per_layer"], "bytes_depth": best["depth"]}
    return cost


def _from_training(here: Mapping[str, Record], block: str, depth: float) -> dict[str, Any]:
    """The ratio of the training runs' own steps: not sampled in turn, so without an interval."""
    own, plain = (here.get(name, {}).get("step_seconds", math.nan) for name in (block, YARDSTICK))
    if not (own > 0 and plain > 0):
        return {}
    return {"step_ratio": own / plain, "ratio_depth": depth, "ratio_from": "training runs, not paired"}


def _without_ladder(timed: pd.DataFrame, kept: pd.DataFrame) -> list[dict[str, Any]]:
    measured = pd.concat(
        [
            table[["family_label", "block", "depth", "params", "match", "nominal_width", "dtype", "device"]]
            for table in (timed, kept)
        ]
    )
    records: list[dict[str, Any]] = []
    for family in family_order(measured["family_label"]):
        here = measured[measured["family_label"] == family]
        depth = here["depth"].max()
        for block in block_order(here["block"]):
            own = here[here["block"] == block].sort_values("depth").iloc[-1]
            empty = dict.fromkeys([*CONTEST, *FRONTIER, *AT_DEPTH], None)
            same = {name: own[name] for name in ("match", "nominal_width", "dtype", "device", "params")}
            records.append(
                empty
                | same
                | {"family_label": family, "block": block, "at_depth": depth, "verdict": NOT_RUN}
                | _cost(timed, kept, family, block, depth)
            )
    return records
