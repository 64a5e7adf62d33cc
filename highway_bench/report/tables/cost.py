"""Which timed and counted cells a contest's costs may be read from: those measured as it was trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

ALIKE: Final = ("family_label", "machine", "device", "dtype", "match")
"""Columns in which a cost must equal its contest; its depth, width and batch may differ, and are said with it."""

PHASES: Final = ("train-step", "forward-backward", "forward")
"""Phases by how much they say of training, most first."""


def measured_alike(table: pd.DataFrame, contest: Mapping[str, Any], block: str, depth: float) -> pd.DataFrame:
    """Eager cells of ``block`` in a throughput or memory table, measured as ``contest`` was trained, nearest first.

    Nearest by depth, then by plain's width, then by batch; of equals, the phase that says most of training.
    """
    same = table["mode"].eq("eager") & table["block"].eq(block)
    for name in ALIKE:
        same &= table[name].eq(contest[name])
    own = table[same]
    wanted = {"depth": depth, "nominal_width": contest["nominal_width"], "batch_size": contest["batch_size"]}
    away = {f"_{name}": (own[name] - (math.nan if at is None else at)).abs() for name, at in wanted.items()}
    late = own["phase"].map(lambda phase: PHASES.index(phase) if phase in PHASES else len(PHASES))
    ordered = own.assign(**away, _late=late).sort_values([*away, "_late"], kind="stable")
    return ordered.drop(columns=[*away, "_late"])
