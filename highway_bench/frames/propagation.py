"""Signal and gradient of initialised networks, over seeds; and the layers that the first training steps change."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any, Final

import pandas as pd

from highway_bench.frames.cells import by_cell
from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import groups, of_task, recipe_of, rows_of
from highway_bench.results.schema import OUTCOMES, Status

SETTING: Final = (
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
"""Columns that are equal for comparable initialised networks, which differ in block and seed."""

SIZES: Final = (
    "activation_ratio",
    "stream_change",
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

IN_RANGE, VANISHES, EXPLODES, MIXED = "in range", "vanishes", "explodes", "mixed"


def starts(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.starts``."""
    table = by_cell(of_task(rows, "propagation"), [*SIZES, *LAYERS, *STILL, "budget_mismatch"])
    recipes = [recipe_of(text) for text in table["recipe"]]
    table["gain"] = [float(recipe.get("gain", 1.0)) for recipe in recipes]
    table["steps"] = [float(recipe.get("steps", math.nan)) for recipe in recipes]
    for way in ("signal", "gradient"):
        gone, grown = table[f"{way}_vanishes_at"], table[f"{way}_explodes_at"]
        table[way] = table["status"].mask(table["status"].isin(OUTCOMES), IN_RANGE)
        table.loc[gone.notna(), way] = VANISHES
        table.loc[grown.notna(), way] = EXPLODES
        table[f"{way}_at"] = gone.fillna(grown)
    return table


def propagation_table(starts: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.propagation``, from that of ``Results.starts``."""
    records = [_start(setting, rows_of(part)) for setting, part in groups(starts, [*SETTING, "gain", "steps", "block"])]
    spread = [f"{name}{end}" for name in SIZES for end in ("", "_low", "_high")]
    verdicts = [f"{way}{what}" for way in ("signal", "gradient") for what in ("", "_agree", "_at", "_low", "_high")]
    common = ["width", "params", "budget_mismatch", "n", "status", "message"]
    columns = [*SETTING, "gain", "steps", "block", *common, *verdicts, *spread]
    return about.in_order(pd.DataFrame(records, columns=columns), ORDERED)


def first_steps(starts: pd.DataFrame, rows: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.first_steps``, from that of ``Results.starts`` and the rows."""
    trained = starts[starts["steps"].notna()]
    frame = of_task(rows, "propagation")
    updates = frame[(frame["metric"] == "update") & frame["value"].notna()]
    middles = updates.groupby([*SETTING, "label", "index"], dropna=False)["value"].median().reset_index()
    moved = {_key(setting): part["value"] for setting, part in groups(middles, [*SETTING, "label"])}
    records = []
    for setting, part in groups(trained, [*SETTING, "gain", "steps", "block"]):
        ran = [cell for cell in rows_of(part) if cell["status"] in OUTCOMES]
        values = moved.get(_key(setting | {"label": setting["block"]}), pd.Series(dtype="float64"))
        record = setting | {"n": len(ran), "diverged": sum(cell["status"] == Status.DIVERGED for cell in ran)}
        for name in STILL:
            record |= _spread(name, [cell[name] for cell in ran])
        record |= {
            "rate": recipe_of(setting["recipe"]).get("rate"),
            "update_least": values.min(),
            "update_most": values.max(),
        }
        records.append(record)
    still = [f"{name}{end}" for name in STILL for end in ("", "_low", "_high")]
    columns = [*SETTING, "gain", "steps", "block", "rate", "n", "diverged", *still, "update_least", "update_most"]
    return about.in_order(pd.DataFrame(records, columns=columns), ORDERED)


def layer_sizes(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The table of ``Results.layer_sizes``."""
    frame = of_task(rows, "propagation")
    points = frame[(frame["metric"] == metric) & (frame["axis"] == "layer")]
    first = points["index"] == (0 if metric == "activation" else points["depth"])
    origin = points[first].set_index(["digest", "machine"])["value"]
    at = pd.MultiIndex.from_frame(points[["digest", "machine"]])
    points = points.assign(ratio=points["value"].to_numpy() / origin.reindex(at).to_numpy())
    points = points[(points["ratio"] > 0) & points["ratio"].lt(math.inf)]
    table = (
        points.groupby([*SETTING, "label", "index"], dropna=False, sort=False)["ratio"]
        .agg(middle="median", low="min", high="max", n="count")
        .reset_index()
        .rename(columns={"label": "block", "index": "layer"})
    )
    table["gain"] = [float(recipe_of(text).get("gain", 1.0)) for text in table["recipe"]]
    return table.sort_values("layer", kind="stable", ignore_index=True)


def _start(setting: dict[str, Any], cells: list[dict[str, Any]]) -> dict[str, Any]:
    ran = [cell for cell in cells if cell["status"] in OUTCOMES]
    record = setting | {name: cells[0][name] for name in ("width", "params", "budget_mismatch", "status")}
    record |= {"n": len(ran), "message": next((cell["message"] for cell in cells if cell["message"]), "")}
    for way in ("signal", "gradient"):
        counted = Counter(cell[way] for cell in ran).most_common(2)
        tied = len(counted) == 2 and counted[0][1] == counted[1][1]
        word, agree = (MIXED, 0) if tied else counted[0] if counted else (record["status"], 0)
        at = [cell[f"{way}_at"] for cell in ran if cell[way] == word]
        record |= {way: word, f"{way}_agree": agree, **_spread(f"{way}_at", at, bounds=way)}
    for name in SIZES:
        record |= _spread(name, [cell[name] for cell in ran])
    return record


def _spread(name: str, values: Iterable[float], *, bounds: str | None = None) -> dict[str, float]:
    """Median, least and largest of the values that are not NaN; the stem of the last two names is ``bounds``."""
    numbers = [value for value in values if value == value]
    low, middle, high = (min(numbers), median(numbers), max(numbers)) if numbers else (math.nan,) * 3
    return {name: middle, f"{bounds or name}_low": low, f"{bounds or name}_high": high}


def _key(setting: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(setting[name] for name in (*SETTING, "label"))
