"""Depth mixing of trained networks, at their start and after training: one row per network, layer and branch."""

from __future__ import annotations

from typing import Final

import pandas as pd

from highway_bench.report.rows import CONTEST, of_task, samples_of

MIXINGS: Final = ("mixing_start", "mixing_end", "mixing_share_start", "mixing_share_end")
"""The weights of the mixing matrix, then the shares of each layer's input."""


def mixing_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The table of ``Results.mixing``."""
    frame = of_task(rows, "gates")
    frame = frame[frame["metric"].isin(MIXINGS) & frame["samples"].notna()]
    frame = frame.rename(columns={"index": "layer"})[[*CONTEST, "label", "depth", "seed", "metric", "layer", "samples"]]
    frame = frame.assign(value=frame["samples"].map(samples_of)).drop(columns="samples").explode("value")
    branch = frame.groupby(level=0).cumcount()
    return frame.assign(branch=branch).astype({"value": float, "layer": int}).reset_index(drop=True)
