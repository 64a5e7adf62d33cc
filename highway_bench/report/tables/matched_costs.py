"""The timed and counted cells that give the costs of a contest: those with the contest's setting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

ALIKE: Final = ("family_label", "machine", "device", "dtype", "match")
"""Columns in which a cost must equal its contest. Depth, width and batch may differ, so reports print them."""

PHASES: Final = ("train-step", "forward-backward", "forward")
"""Phases by their relevance to training, highest first."""

SIZE: Final = ("depth", "nominal_width", "batch_size")
"""Columns that must be equal for a comparison of costs between blocks."""


def measured_alike(table: pd.DataFrame, contest: Mapping[str, Any], block: str, depth: float) -> pd.DataFrame:
    """Eager cells of ``block`` in a throughput or memory ``table`` with the setting of ``contest``, nearest first.

    Nearest by depth, then by plain's width, then by batch; ties are in the order of ``PHASES``.
    """
    own = _alike(table, contest)
    return _nearest_first(own[own["block"] == block], contest, depth)


def at_one_size(table: pd.DataFrame, contest: Mapping[str, Any], depth: float) -> pd.DataFrame:
    """Eager cells with the setting of ``contest``, all of one size: equal depth, plain's width and batch.

    This is the size with the most blocks; of several, the nearest. Costs at different sizes are not comparable.
    """
    own = _nearest_first(_alike(table, contest), contest, depth)
    if own.empty:
        return own
    blocks = own.groupby(list(SIZE), sort=False)["block"].nunique()
    best = blocks.reset_index().iloc[int(blocks.argmax())]
    return own[(own[list(SIZE)] == best[list(SIZE)]).all(axis=1)]


def _alike(table: pd.DataFrame, contest: Mapping[str, Any]) -> pd.DataFrame:
    same = table["mode"].eq("eager")
    for name in ALIKE:
        same &= table[name].eq(contest[name])
    return table[same]


def _nearest_first(own: pd.DataFrame, contest: Mapping[str, Any], depth: float) -> pd.DataFrame:
    wanted = {"depth": depth, "nominal_width": contest["nominal_width"], "batch_size": contest["batch_size"]}
    away = {f"_{name}": (own[name] - (math.nan if at is None else at)).abs() for name, at in wanted.items()}
    late = own["phase"].map(lambda phase: PHASES.index(phase) if phase in PHASES else len(PHASES))
    ordered = own.assign(**away, _late=late).sort_values([*away, "_late"], kind="stable")
    return ordered.drop(columns=[*away, "_late"])
