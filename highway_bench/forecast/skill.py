"""Skill: how much better forecasts of left-out groups are than simple ones, with a bootstrap over connections."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from highway_bench.forecast.examples import FEATURES, NAMES
from highway_bench.forecast.logistic import fit_logistic
from highway_bench.measure.statistics import CONFIDENCE, RESAMPLES, Array, IntervalEstimate, wilson

LeftOut = Literal["connection", "family"]
LEFT_OUT: Final[tuple[LeftOut, ...]] = ("connection", "family")
REFERENCES: Final = ("base rate", "depth alone")
BINS: Final = 10
LEAST_BIN: Final = 10  # runs


class Skill(NamedTuple):
    """The Brier skill score 1 − Σ(p − y)² / Σ(r − y)² against the reference forecasts r; 0 is no better than these."""

    left_out: LeftOut
    against: str
    score: IntervalEstimate  # n counts connections


class CalibrationBin(NamedTuple):
    """Runs of similar forecasts: their mean forecast, and the share that succeeded with Wilson's interval."""

    forecast: float
    share: float
    low: float
    high: float
    n: int


def skills_of(examples: pd.DataFrame, left_out: LeftOut, forecasts: dict[str, Array]) -> list[Skill]:
    """The skill of ``forecasts["all"]`` against each of ``REFERENCES``.

    Runs of one connection are alike, so the bootstrap draws connections.
    """
    success = examples["success"].to_numpy(dtype=float)
    errors = pd.DataFrame({name: (p - success) ** 2 for name, p in forecasts.items()})
    sums = errors.groupby(examples["connection"].to_numpy()).sum()
    draws = np.random.default_rng(0).multinomial(len(sums), [1 / len(sums)] * len(sums), size=RESAMPLES)
    skills = []
    for against in REFERENCES:
        own, reference = sums["all"].to_numpy(), sums[against].to_numpy()
        resampled = 1 - (draws @ own) / (draws @ reference)
        low, high = np.quantile(resampled, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        score = IntervalEstimate(float(1 - own.sum() / reference.sum()), float(low), float(high), len(sums))
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
