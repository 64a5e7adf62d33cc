"""Skill: how much better forecasts of left-out groups are than simple ones, with a jackknife over these groups."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.forecast.examples import FEATURES, NAMES
from highway_bench.forecast.logistic import fit_logistic
from highway_bench.measure.statistics import Array, IntervalEstimate, t_interval, wilson

LeftOut = Literal["connection", "family"]
LEFT_OUT: Final[tuple[LeftOut, ...]] = ("connection", "family")
REFERENCES: Final = ("base rate", "depth alone")
BINS: Final = 10
LEAST_BIN: Final = 10  # runs


class Skill(NamedTuple):
    """The Brier skill score 1 − Σ(p − y)² / Σ(r − y)² against the reference forecasts r; 0 is no better than these."""

    left_out: LeftOut
    against: str
    score: IntervalEstimate  # n counts the groups, of which each was left out once


class CalibrationBin(NamedTuple):
    """Runs of similar forecasts: their mean forecast, and the share that succeeded with Wilson's interval."""

    forecast: float
    share: float
    low: float
    high: float
    n: int


def skills_of(examples: pd.DataFrame, left_out: LeftOut, forecasts: dict[str, Array]) -> list[Skill]:
    """The skill of ``forecasts["all"]`` against each of ``REFERENCES``.

    Runs of one group are alike, so the interval is Student's t of the jackknife's pseudo-values of the groups (Tukey
    1958, doi:10.1214/aoms/1177706647).
    """
    success = examples["success"].to_numpy(dtype=float)
    errors = pd.DataFrame({name: (p - success) ** 2 for name, p in forecasts.items()})
    sums = errors.groupby(examples[left_out].to_numpy()).sum()
    skills = []
    for against in REFERENCES:
        own, reference = sums["all"].to_numpy(), sums[against].to_numpy()
        whole = 1 - own.sum() / reference.sum()
        without = 1 - (own.sum() - own) / (reference.sum() - reference)
        interval = t_interval(len(sums) * whole - (len(sums) - 1) * without)
        half = (interval.high - interval.low) / 2
        score = IntervalEstimate(float(whole), float(whole - half), float(whole + half), len(sums))
        skills.append(Skill(left_out, against, score))
    return skills


def held_out(examples: pd.DataFrame, left_out: LeftOut) -> dict[str, Array]:
    """Forecasts of each run by fits without its connection or family: from ``all`` features, from the depth alone, and
    the base rate. A fit whose runs all had one outcome forecasts their share."""
    groups = examples[left_out].to_numpy()
    features, success = examples[list(NAMES)].to_numpy(dtype=float), examples["success"].to_numpy(dtype=float)
    falls = [feature.falls for feature in FEATURES]  # the depth is the first feature
    forecasts = {name: np.full(len(examples), np.nan) for name in ("all", *REFERENCES)}
    for group in np.unique(groups):
        out = groups == group
        share = success[~out].mean()
        for name, columns in (("all", len(FEATURES)), ("depth alone", 1), ("base rate", 0)):
            if columns and 0 < share < 1:
                model = fit_logistic(features[~out, :columns], success[~out], falls[:columns])
                forecasts[name][out] = model.probability(features[out, :columns])
            else:
                forecasts[name][out] = share
    return forecasts


def calibration(forecast: Array, success: Array) -> list[CalibrationBin]:
    """Runs in order of their ``forecast``, in up to ``BINS`` bins of equal numbers."""
    bins = max(1, min(BINS, len(forecast) // LEAST_BIN))
    parts = np.array_split(np.argsort(forecast, kind="stable"), bins)
    return [
        CalibrationBin(
            float(forecast[part].mean()),
            float(success[part].mean()),
            *wilson(int(success[part].sum()), len(part)),
            len(part),
        )
        for part in parts
    ]
