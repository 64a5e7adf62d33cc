"""How well the order of connections carries over to other steps, data, widths, depths and optimisers.

Two columns of the wide table are compared where they differ in one of these. Connections are ordered by the mean
held-out loss of their better start. One of which a seed diverged, or every tuning run, comes last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from highway_bench.frames.rows import groups, rows_of
from highway_bench.measure.paired import BETTER, WORSE
from highway_bench.measure.statistics import CONFIDENCE
from highway_bench.report.choice.columns import IDENTITY, REFERENCE
from highway_bench.success.ladder import DIVERGES

DIFFER: Final = ("steps", "data", "plain_width", "depth", "optimiser")
"""What two settings may differ in."""
SETTING: Final = ("kind", *DIFFER)
SIZES: Final = ("steps", "plain_width", "depth")
LEAST: Final = 4
"""Fewer connections have no order to speak of."""
DRAWS: Final = 500


@dataclass(frozen=True)
class Column:
    """The connections of one setting: the held-out loss of each seed, infinite where it diverged, and the word against
    pre-norm."""

    setting: dict[str, Any]
    losses: dict[str, np.ndarray]
    words: dict[str, str]


def transfer(answers: pd.DataFrame, finals: pd.DataFrame) -> pd.DataFrame:
    """A row for each pair of settings that differ in one thing; of depths only the shallowest and the deepest.

    Columns: what ``differs``, the setting (``SETTING``) with the values ``of`` and ``to``, the number of
    ``connections`` that both have, Kendall's ``tau`` of their orders with bounds from a bootstrap over seeds, and those
    that ``change`` sides: better than pre-norm in one, worse in the other."""
    columns = sorted(_columns(answers, finals), key=lambda one: [one.setting[name] for name in SIZES])
    records = []
    for one, other in combinations(columns, 2):
        differs = [name for name in SETTING if one.setting[name] != other.setting[name]]
        names = sorted(set(one.losses) & set(other.losses))
        if len(differs) != 1 or differs[0] not in DIFFER or len(names) < LEAST:
            continue
        if differs == ["depth"] and _is_between(one, other, columns):
            continue
        tau, low, high = _tau([[column.losses[name] for name in names] for column in (one, other)])
        sides = {name: {column.words.get(name) for column in (one, other)} for name in names}
        records.append(
            {
                "differs": differs[0],
                **one.setting,
                "of": one.setting[differs[0]],
                "to": other.setting[differs[0]],
                "connections": len(names),
                "tau": tau,
                "tau_low": low,
                "tau_high": high,
                "change": ", ".join(name for name in names if sides[name] == {BETTER, WORSE}),
            }
        )
    return pd.DataFrame(records)


def _columns(answers: pd.DataFrame, finals: pd.DataFrame) -> Iterator[Column]:
    """The settings in which several connections were trained at one budget of parameters."""
    about = answers[list(dict.fromkeys([*IDENTITY, *DIFFER, "outcome", "held_out_word"]))]
    runs = about.merge(finals[[*IDENTITY, "seed", "held_out"]], on=list(IDENTITY), how="left")
    runs = runs[runs["seed"].notna() | runs["outcome"].eq(DIVERGES)]
    runs = runs[runs["protocol"].str.startswith("equal params")]
    runs = runs.assign(score=runs["held_out"].fillna(math.inf))
    for setting, part in groups(runs, SETTING):
        losses: dict[str, np.ndarray] = {}
        words: dict[str, str] = {}
        for own, seeds in groups(part, ["connection", "start"]):
            name, values = own["connection"], seeds["score"].to_numpy()
            if name not in losses or values.mean() < losses[name].mean():
                losses[name], words[name] = values, rows_of(seeds)[0]["held_out_word"]
        if REFERENCE in losses:
            yield Column(setting, losses, words)


def _is_between(one: Column, other: Column, columns: list[Column]) -> bool:
    """Whether two settings are not the shallowest and the deepest of those that differ in depth alone."""
    rest = [name for name in SETTING if name != "depth"]
    alike = [own for own in columns if all(own.setting[name] == one.setting[name] for name in rest)]
    depths = [own.setting["depth"] for own in alike if len(set(own.losses) & set(one.losses)) >= LEAST]
    return {one.setting["depth"], other.setting["depth"]} != {min(depths), max(depths)}


def _tau(columns: list[list[np.ndarray]]) -> tuple[float, float, float]:
    """Kendall's τ of the means of two ``columns``, with an interval from resampled seeds."""
    draws = np.random.default_rng(0)
    drawn = [
        np.stack([draws.choice(seeds, (DRAWS, len(seeds))).mean(axis=1) for seeds in column], axis=1)
        for column in columns
    ]
    found = [stats.kendalltau(*means).statistic for means in zip(*drawn, strict=True)]
    low, high = np.nanquantile(found, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    own = stats.kendalltau(*([seeds.mean() for seeds in column] for column in columns)).statistic
    return float(own), float(low), float(high)
