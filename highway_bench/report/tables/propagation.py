"""What starts do to signal and gradient, over seeds: verdicts by block, family, depth and gain; and what first steps
move."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any, Final

import pandas as pd

from highway_bench.report.rows import groups, in_order, of_task, recipe_of, rows_of
from highway_bench.report.tables.cells import by_cell
from highway_bench.results.schema import OUTCOMES, Status

PLACE: Final = (
    "family_label",
    "dataset",
    "depth",
    "recipe",
    "match",
    "nominal_width",
    "batch_size",
    "seq_len",
    "dtype",
    "device",
    "machine",
    "machine_label",
)
"""Columns equal within a set of starts that may be compared: they differ in block and seed."""

SIZES: Final = (
    "activation_ratio",
    "gradient_ratio",
    "weight_gradient_ratio",
    "gate_mean",
    "gate_sum",
    "gate_saturation",
    "depth_scale",
    "jacobian_largest",
    "jacobian_smallest",
    "jacobian_spread",
    "jacobian_rank",
    "jacobian_gain",
    "gradient_correlation",
)
LAYERS: Final = ("signal_vanishes_at", "signal_explodes_at", "gradient_vanishes_at", "gradient_explodes_at")
STILL: Final = ("still_layers", "still_first", "still_last")

ORDERED: Final = (
    "family_label",
    "dataset",
    "depth",
    "gain",
    "steps",
    "recipe",
    "nominal_width",
    "dtype",
    "machine",
    "block",
)

HEALTHY, VANISHES, EXPLODES, MIXED = "healthy", "vanishes", "explodes", "mixed"


def starts(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a start: cell, ``gain``, ``steps`` (NaN where it did not train), ``SIZES``, ``LAYERS``, ``STILL``, and the
    verdicts ``signal`` and ``gradient`` with the layers ``signal_at`` and ``gradient_at`` from which they hold."""
    table = by_cell(of_task(rows, "propagation"), [*SIZES, *LAYERS, *STILL, "budget_mismatch"])
    recipes = [recipe_of(text) for text in table["recipe"]]
    table["gain"] = [float(recipe.get("gain", 1.0)) for recipe in recipes]
    table["steps"] = [float(recipe.get("steps", math.nan)) for recipe in recipes]
    for way in ("signal", "gradient"):
        gone, grown = table[f"{way}_vanishes_at"], table[f"{way}_explodes_at"]
        table[way] = table["status"].mask(table["status"].isin(OUTCOMES), HEALTHY)
        table.loc[gone.notna(), way] = VANISHES
        table.loc[grown.notna(), way] = EXPLODES
        table[f"{way}_at"] = gone.fillna(grown)
    return table


def propagation_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a block at each place.

    Columns: ``PLACE``, ``gain``, ``steps``, ``block``, ``width``, ``params``, ``budget_mismatch``; ``n`` seeds;
    ``signal`` and ``gradient``, the verdicts that most seeds have (``mixed`` where two have as many), ``…_agree`` how
    many, and over these the median, least and largest ``…_at``, ``…_low``, ``…_high``; the median of each of ``SIZES``
    over the seeds that have it, with ``…_low`` and ``…_high``; ``status`` and ``message``.
    """
    records = [_start(place, rows_of(part)) for place, part in groups(starts(rows), [*PLACE, "gain", "steps", "block"])]
    spread = [f"{name}{end}" for name in SIZES for end in ("", "_low", "_high")]
    verdicts = [f"{way}{what}" for way in ("signal", "gradient") for what in ("", "_agree", "_at", "_low", "_high")]
    about = ["width", "params", "budget_mismatch", "n", "status", "message"]
    columns = [*PLACE, "gain", "steps", "block", *about, *verdicts, *spread]
    return in_order(pd.DataFrame(records, columns=columns), ORDERED)


def steps_table(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a block at each place where first steps were trained.

    Columns: ``PLACE``, ``gain``, ``steps``, ``rate``, ``block``; ``n`` seeds and ``diverged`` ones; medians over seeds
    of ``still_layers``, ``still_first`` and ``still_last``, least and largest in ``…_low`` and ``…_high``; the smallest
    and the largest layer's ‖ΔW‖/‖W‖, ``update_least`` and ``update_most``, each layer's the median over seeds.
    """
    table = starts(rows)
    trained = table[table["steps"].notna()]
    frame = of_task(rows, "propagation")
    updates = frame[(frame["metric"] == "update") & frame["value"].notna()]
    middles = updates.groupby([*PLACE, "label", "index"], dropna=False)["value"].median().reset_index()
    moved = {_key(place): part["value"] for place, part in groups(middles, [*PLACE, "label"])}
    records = []
    for place, part in groups(trained, [*PLACE, "gain", "steps", "block"]):
        ran = [cell for cell in rows_of(part) if cell["status"] in OUTCOMES]
        values = moved.get(_key(place | {"label": place["block"]}), pd.Series(dtype="float64"))
        record = place | {"n": len(ran), "diverged": sum(cell["status"] == Status.DIVERGED for cell in ran)}
        for name in STILL:
            record |= _spread(name, [cell[name] for cell in ran])
        record |= {
            "rate": recipe_of(place["recipe"]).get("rate"),
            "update_least": values.min(),
            "update_most": values.max(),
        }
        records.append(record)
    still = [f"{name}{end}" for name in STILL for end in ("", "_low", "_high")]
    columns = [*PLACE, "gain", "steps", "block", "rate", "n", "diverged", *still, "update_least", "update_most"]
    return in_order(pd.DataFrame(records, columns=columns), ORDERED)


def profiles(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A row a place, block and layer of a metric that has a value a layer, as it is over all seeds' starts relative to
    where it starts (``activation`` at the first layer's input, ``gradient`` at the last layer's output).

    Columns: ``PLACE``, ``gain``, ``block``, ``layer``, ``middle``, ``low`` and ``high`` (median, least and largest over
    ``n`` seeds). Sizes of 0 and those that are not finite have no row.
    """
    frame = of_task(rows, "propagation")
    points = frame[(frame["metric"] == metric) & (frame["axis"] == "layer")]
    first = points["index"] == (0 if metric == "activation" else points["depth"])
    begins = points[first].set_index(["digest", "machine"])["value"]
    at = pd.MultiIndex.from_frame(points[["digest", "machine"]])
    points = points.assign(ratio=points["value"].to_numpy() / begins.reindex(at).to_numpy())
    points = points[(points["ratio"] > 0) & points["ratio"].lt(math.inf)]
    table = (
        points.groupby([*PLACE, "label", "index"], dropna=False, sort=False)["ratio"]
        .agg(middle="median", low="min", high="max", n="count")
        .reset_index()
        .rename(columns={"label": "block", "index": "layer"})
    )
    table["gain"] = [float(recipe_of(text).get("gain", 1.0)) for text in table["recipe"]]
    return table.sort_values("layer", kind="stable", ignore_index=True)


def _start(place: dict[str, Any], cells: list[dict[str, Any]]) -> dict[str, Any]:
    ran = [cell for cell in cells if cell["status"] in OUTCOMES]
    record = place | {name: cells[0][name] for name in ("width", "params", "budget_mismatch", "status")}
    record |= {"n": len(ran), "message": next((cell["message"] for cell in cells if cell["message"]), None)}
    for way in ("signal", "gradient"):
        counted = Counter(cell[way] for cell in ran).most_common(2)
        tied = len(counted) == 2 and counted[0][1] == counted[1][1]
        word, agree = (MIXED, 0) if tied else counted[0] if counted else (record["status"], 0)
        at = [cell[f"{way}_at"] for cell in ran if cell[way] == word]
        record |= {way: word, f"{way}_agree": agree, **_spread(f"{way}_at", at, ends=way)}
    for name in SIZES:
        record |= _spread(name, [cell[name] for cell in ran])
    return record


def _spread(name: str, values: Iterable[float], *, ends: str | None = None) -> dict[str, float]:
    """The median of those values that there are, the least and the largest; the last two are named by ``ends``."""
    found = [value for value in values if value == value]
    low, middle, high = (min(found), median(found), max(found)) if found else (math.nan,) * 3
    return {name: middle, f"{ends or name}_low": low, f"{ends or name}_high": high}


def _key(place: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(place[name] for name in (*PLACE, "label"))
