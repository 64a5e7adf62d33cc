"""The measurements of the gates task: one row per network, and one row per network and layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import pandas as pd

from highway_bench.frames.descriptions import Descriptions
from highway_bench.frames.rows import CONTEST, common_value, groups, of_task
from highway_bench.measure.statistics import t_interval

NETWORK: Final = (*CONTEST, "depth", "label", "start", "width", "seed")
SCALARS: Final = (
    "final_loss",
    "success",
    "rate",
    "intact_loss",
    "intact_error",
    "sparsity_one",
    "sparsity_average",
)
LAYERED: Final = (
    "gate_bias_start",
    "gate_bias_end",
    "gate_activity",
    "gates_shut",
    "gates_full",
    "gates_open_one",
    "gates_open_average",
    "gates_open_some",
    "gate_class_spread",
    "stream_change",
    "lesion_loss",
    "lesion_error",
)


def networks(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.trained_networks``."""
    frame = of_task(rows, "gates")
    about = frame.drop_duplicates("digest")[["digest", *NETWORK]]
    single = frame[frame["axis"].fillna("") == ""].pivot_table(index="digest", columns="metric", values="value")
    return about.join(single.reindex(columns=list(SCALARS)), on="digest").reset_index(drop=True)


def layers(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.trained_layers``."""
    frame = of_task(rows, "gates")
    frame = frame[frame["axis"] == "layer"]
    values = frame.pivot_table(index=["digest", "index"], columns="metric", values="value")
    table = values.reindex(columns=list(LAYERED)).reset_index().merge(networks(rows), on="digest")
    table = table.rename(columns={"index": "layer"})
    for name in ("loss", "error"):
        table[f"lesion_{name}_change"] = table[f"lesion_{name}"] - table[f"intact_{name}"]
    return table.astype({"layer": int}).sort_values(["label", "seed", "layer"], ignore_index=True)


def gates_table(networks: pd.DataFrame, by_layer: pd.DataFrame, about: Descriptions) -> pd.DataFrame:
    """The table of ``Results.gates``, from those of ``trained_networks`` and ``trained_layers``."""
    records = []
    for setting, part in groups(networks, [*CONTEST, "depth", "label"]):
        trained = part[part["success"] == 1]  # others give no evidence on gates
        own = by_layer[by_layer["digest"].isin(trained["digest"])]
        record = {name: value for name, value in setting.items() if name != "label"} | {"block": setting["label"]}
        record |= {"start": common_value(part["start"]), "width": part["width"].max()}
        record |= {"n": int(part["success"].notna().sum()), "k": len(trained)}
        record |= {name: trained[name].mean() for name in SCALARS} | {name: own[name].mean() for name in LAYERED}
        record["final_loss"] = math.exp(np.log(trained["final_loss"]).mean())  # as in the table of trainability
        rises = own.groupby("layer")["lesion_loss_change"].mean().dropna()
        at = int(rises.argmax()) if len(rises) else None
        most = {"lesion_most": math.nan, "lesion_at": math.nan}
        most |= {} if at is None else {"lesion_most": rises.iloc[at], "lesion_at": rises.index[at]}
        records.append(record | most)
    columns = [*CONTEST, "depth", "block", "start", "width", "n", "k", *SCALARS, *LAYERED, "lesion_most", "lesion_at"]
    table = pd.DataFrame(records, columns=columns)
    return about.in_order(table, (*CONTEST, "depth", "block"))


def over_seeds(table: pd.DataFrame, by: Sequence[str], metrics: Iterable[str]) -> pd.DataFrame:
    """The mean of each of ``metrics`` over rows with equal ``by``, with its 95 % t interval in ``_low`` and ``_high``.

    NaN without values; a single value has a NaN interval. ``n`` counts the rows.
    """
    records = []
    for values_of_by, part in table.groupby(list(by), sort=False):
        record = dict(zip(by, values_of_by, strict=True)) | {"n": len(part)}
        for metric in metrics:
            values = part[metric].dropna()
            interval = t_interval(values) if len(values) else None
            mean = (interval.value, interval.low, interval.high) if interval else (math.nan,) * 3
            record |= dict(zip((metric, f"{metric}_low", f"{metric}_high"), mean, strict=True))
        records.append(record)
    return pd.DataFrame(records)
