"""What the gates task saw: a row a network, and a row a network and layer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import pandas as pd

from highway_bench.measure.statistics import t_interval
from highway_bench.report.frame import CONTEST, of_task

NETWORK: Final = (*CONTEST, "depth", "label", "seed")
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
    """A row a trained network: ``NETWORK``, ``digest`` and ``SCALARS`` (NaN where there is no value)."""
    frame = of_task(rows, "gates")
    about = frame.drop_duplicates("digest")[["digest", *NETWORK]]
    single = frame[frame["axis"].fillna("") == ""].pivot_table(index="digest", columns="metric", values="value")
    return about.join(single.reindex(columns=list(SCALARS)), on="digest").reset_index(drop=True)


def layers(rows: pd.DataFrame) -> pd.DataFrame:
    """A row a network and layer: the network's columns, ``layer`` (the block's joins, from 1), ``LAYERED``, and what
    the lesion changes: ``lesion_loss_change`` (nat) and ``lesion_error_change`` (share of the training items)."""
    frame = of_task(rows, "gates")
    frame = frame[frame["axis"] == "layer"]
    values = frame.pivot_table(index=["digest", "index"], columns="metric", values="value")
    table = values.reindex(columns=list(LAYERED)).reset_index().merge(networks(rows), on="digest")
    table = table.rename(columns={"index": "layer"})
    for name in ("loss", "error"):
        table[f"lesion_{name}_change"] = table[f"lesion_{name}"] - table[f"intact_{name}"]
    return table.astype({"layer": int}).sort_values(["label", "seed", "layer"], ignore_index=True)


def over_seeds(table: pd.DataFrame, by: Sequence[str], metrics: Iterable[str]) -> pd.DataFrame:
    """Mean of each of ``metrics`` over the rows of equal ``by``, with the 95 % t interval in ``_low`` and ``_high``.

    NaN where there are no values, and interval ends where there is one. ``n`` counts the rows.
    """
    records = []
    for place, part in table.groupby(list(by), sort=False):
        record = dict(zip(by, place, strict=True)) | {"n": len(part)}
        for metric in metrics:
            values = part[metric].dropna()
            found = t_interval(values) if len(values) else None
            ends = (found.value, found.low, found.high) if found else (math.nan,) * 3
            record |= dict(zip((metric, f"{metric}_low", f"{metric}_high"), ends, strict=True))
        records.append(record)
    return pd.DataFrame(records)
