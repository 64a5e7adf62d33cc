"""Fitting a forecast, and the decision whether there is one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from highway_bench.forecast.examples import FEATURES, NAMES, examples
from highway_bench.forecast.logistic import LogisticModel, fit_logistic
from highway_bench.forecast.skill import LEFT_OUT, CalibrationBin, Skill, calibration, held_out, skills_of
from highway_bench.report import open_results
from highway_bench.report.format import between, three
from highway_bench.results.parquet import ParquetRows, parquet_files

LEAST: Final = {"connection": (5, "connections"), "family": (2, "families")}
"""The fewest groups that a validation needs, and their plural."""


@dataclass(frozen=True)
class Validation:
    """How well left-out runs were forecast: four skills, and the calibration with a connection left out."""

    runs: int
    skills: tuple[Skill, ...]
    calibration: tuple[CalibrationBin, ...]


@dataclass(frozen=True)
class Forecast:
    """A forecast whose skill is proven: each interval in ``validation.skills`` is above 0."""

    model: LogisticModel
    validation: Validation

    def probability(self, features: Mapping[str, float | None]) -> float:
        """The probability that a seed trains to success. ``features`` are those of ``FEATURES`` that are known."""
        values = [math.nan if (value := features.get(name)) is None else float(value) for name in NAMES]
        return float(self.model.probability(np.array([values]))[0])

    def of_runs(self, rows: pd.DataFrame) -> dict[str, float]:
        """By digest, the probability of each training run in ``rows`` whose start was measured."""
        table = examples(rows)
        values = self.model.probability(table[list(NAMES)].to_numpy(dtype=float))
        return dict(zip(table["digest"], values.tolist(), strict=True))


@dataclass(frozen=True)
class NoSkill:
    """There is no forecast, for this ``reason``; ``validation`` is ``None`` where the runs are too few for one."""

    reason: str
    validation: Validation | None = None


def fit_from(source: str | os.PathLike[str]) -> Forecast | NoSkill:
    """The forecast from the rows of a store, or from the Parquet files of a folder such as the committed ``docs/data``.

    Raises ``BadInput`` where there are none."""
    if not os.path.isdir(source):
        return fit(open_results(source).rows)
    return fit(pd.concat([ParquetRows(path).frame() for path in parquet_files([source])], ignore_index=True))


def fit(rows: pd.DataFrame) -> Forecast | NoSkill:
    """The forecast of success from a store's ``rows`` of ``trainability`` and ``propagation``.

    It is validated on one connection with its variants left out, then on one family. There is a forecast only if its
    Brier skill, against the base rate and against the depth alone, is above 0 in both validations with its whole
    interval.
    """
    table = examples(rows)
    if lacking := too_few(table):
        return NoSkill(lacking)
    success = table["success"].to_numpy(dtype=float)
    forecasts = {left_out: held_out(table, left_out) for left_out in LEFT_OUT}
    skills = tuple(skill for left_out in LEFT_OUT for skill in skills_of(table, left_out, forecasts[left_out]))
    bins = tuple(calibration(forecasts["connection"]["all"], success))
    validation = Validation(len(table), skills, bins)
    if unproven := [skill for skill in skills if not skill.score.low > 0]:
        return NoSkill(doubt(unproven, len(skills)), validation)
    falls = [feature.falls for feature in FEATURES]
    return Forecast(fit_logistic(table[list(NAMES)].to_numpy(dtype=float), success, falls), validation)


def too_few(table: pd.DataFrame) -> str:
    """Why no validation is possible with these examples; empty where one is."""
    if table.empty:
        return "no training run has a measured start"
    if table["success"].nunique() < 2:
        return f"all {len(table)} runs with a measured start have the same outcome"
    for kind, (least, several) in LEAST.items():
        if (count := table[kind].nunique()) < least:
            return f"runs of {least} {several} are needed, and the rows have those of {count}"
    return ""


def doubt(unproven: Sequence[Skill], every: int) -> str:
    """How many of ``every`` skills are not above 0, and the lowest of them."""
    lowest = min(unproven, key=lambda skill: skill.score.low)
    score = f"{three(lowest.score.value)} {between(lowest.score.low, lowest.score.high)}"
    where = f"against the {lowest.against} with one {lowest.left_out} left out"
    return f"{len(unproven)} of {every} skills are not surely above 0 (the lowest, {where}: {score})"
