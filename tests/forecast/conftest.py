"""Rows of trainings whose success depends on the depth and the gradient's ratio in a known way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from highway_bench.results.schema import COLUMNS, Row, row

CONNECTIONS, FAMILIES, DEPTHS, SEEDS = 9, 6, (5, 10, 20, 40), 4


def training(base: Row, success: bool, fall: float) -> list[Row]:
    """The rows of one training: its loss falls by ``fall`` in ln over the first fifty steps."""
    base = base | {"status": "ok" if success else "stalled"}
    scalars = {"success": float(success), "final_loss": 0.1 if success else 1.0, "rate": 0.1}
    curve = {8: 2.0, 48: 2.0 * np.exp(-fall), 56: 2.0 * np.exp(-fall)}
    return [base | {"metric": name, "value": value} for name, value in scalars.items()] + [
        base | {"metric": "loss", "value": float(loss), "axis": "step", "index": float(step)}
        for step, loss in curve.items()
    ]


def start(base: Row, decades: float) -> list[Row]:
    """The rows of one start whose gradient changes by ``decades``."""
    values = {"gradient_ratio": 10**-decades, "jacobian_gain": 10**-decades, "gradient_correlation": 0.5}
    return [base | {"metric": name, "value": value, "status": "ok"} for name, value in values.items()]


def store(truth: Callable[[float, float], float], *, seed: int = 0, shuffled: bool = False) -> pd.DataFrame:
    """Trainings that succeed with the probability ``truth(ln depth, decades of the gradient)``."""
    source = np.random.default_rng(seed)
    cells: list[tuple[dict[str, Any], float]] = []
    for number in range(CONNECTIONS):
        for family in range(FAMILIES):
            slope = source.uniform(0, 0.6)
            for depth in DEPTHS:
                where = {"block": f"gate-{number}", "family": f"family-{family}", "depth": depth}
                cells.append((where, slope * depth * source.uniform(0.7, 1.3) / 4))
    wins = [source.random(SEEDS) < truth(np.log(where["depth"]), decades) for where, decades in cells]
    if shuffled:
        flat = np.concatenate(wins)
        source.shuffle(flat)
        wins = list(flat.reshape(len(wins), -1))
    rows: list[Row] = []
    for (where, decades), own in zip(cells, wins, strict=True):
        common: dict[str, Any] = {
            "run_id": "run-1", "machine": "Example CPU", "device": "cpu", "threads": 1, "dtype": "float32",
            "block_options": "{}", "family_options": "{}", "match": "params", "width": 16, "nominal_width": 16,
            "batch_size": 32, "mode": "eager", "time_utc": "2026-01-02T03:04:05+00:00", **where,
        }  # fmt: skip
        name = "/".join(map(str, where.values()))
        for trial, success in enumerate(own):
            recipe = json.dumps({"steps": 400, "rate": 0.1})
            base = row(
                **common, task="trainability", recipe=recipe, dataset="digits", seed=trial, digest=f"{name}/{trial}"
            )
            rows += training(base, bool(success), float(source.normal(1.0, 0.2)))
        rows += start(row(**common, task="propagation", recipe='{"gain":1.0}', seed=0, digest=f"start/{name}"), decades)
    kinds = {"INTEGER": "Int64", "REAL": "float64", "TEXT": "str"}
    frame = pd.DataFrame.from_records(rows, columns=list(COLUMNS))
    return frame.astype({name: kinds[kind] for name, (kind, _) in COLUMNS.items()})


def by_gradient(log_depth: float, decades: float) -> float:
    """Success that falls with the gradient's decades, and less with the depth."""
    return float(1 / (1 + np.exp(-(5 - 3 * decades - 0.5 * log_depth))))


def by_depth(log_depth: float, decades: float) -> float:
    """Success that depends on the depth alone."""
    return float(1 / (1 + np.exp(-(6 - 2.4 * log_depth))))


@pytest.fixture(scope="session")
def skilled() -> pd.DataFrame:
    """Trainings whose start decides them."""
    return store(by_gradient)


@pytest.fixture(scope="session")
def shuffled() -> pd.DataFrame:
    """The same trainings with their outcomes dealt out at random."""
    return store(by_gradient, shuffled=True)


@pytest.fixture(scope="session")
def depth_decides() -> pd.DataFrame:
    """Trainings of which the start says nothing beyond the depth."""
    return store(by_depth)
