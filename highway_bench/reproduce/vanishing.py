"""Vanishing and exploding signals: products of factors below and above one over many layers, and frozen layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from highway_bench.analysis.signal import FACTOR
from highway_bench.cell import Cell
from highway_bench.reproduce._measured import measured
from highway_bench.reproduce._starts import SIZES, StartCase, size, start_cell, starts_table, still_text
from highway_bench.reproduce.base import Conclusion, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.reproduce.quantities import Region, Statistic, mean
from highway_bench.reproduce.request import Request

DEPTH, SEEDS = 50, 10
STEPS = 20
FIRST_STEPS = {"optimiser": "sgd", "rate": 0.01, "momentum": 0.0, "decay": 1.0, "steps": STEPS}
LECTURE = "a lecture on highway networks"

BELOW: StartCase = ("ReLU, He weights × 0.5", "plain", {}, 0.5)
ONE: StartCase = ("ReLU, He weights", "plain", {}, 1.0)
ABOVE: StartCase = ("ReLU, He weights × 2", "plain", {}, 2.0)
SIGMOID: StartCase = ("sigmoid, Glorot weights", "plain", {"activation": "sigmoid"}, 1.0)
TANH: StartCase = ("tanh, Glorot weights", "plain", {"activation": "tanh"}, 1.0)
BARE, TRAINED = (BELOW, ONE, ABOVE), (SIGMOID, TANH)

HALF, TENTH = DEPTH / 2, DEPTH / 10  # layers
SCATTER = 2.0  # layers between seeds that stand still


@register_reproduction(
    "vanishing",
    title="Signals that vanish and explode over 50 layers, and layers that stand still",
    source=LECTURE,
)
class Vanishing(Reproduction):
    """50 dense plain layers of 64 units, before training, and in the first 20 steps of SGD on digits.

    Initial weights are multiplied by 0.5, 1 and 2, which is the factor by which a ReLU layer changes the signal. In
    the first steps, a layer stands still if its relative change is less than a hundredth of the largest one.
    """

    takes = frozenset({"seeds"})
    version = RuleVersion(1, "2026-11-23", seen=200)  # those below were seen while the rules were written

    def cells(self, request: Request) -> list[Cell]:
        return [cell for case in (*BARE, *TRAINED) for cell in self._cells(case, request)]

    def claims(self, request: Request) -> Sequence[Claim]:
        common: dict[str, Any] = {
            "source": LECTURE,
            "evidence": Evidence.SECONDARY,
            "statistic": Statistic.MEAN,
            "n": len(self.seeds(request, SEEDS)),
            "version": self.version,
        }
        crossing = (
            f"RMS of the signal after {DEPTH} layers over that before, and of the gradient in the other direction"
        )
        return [
            Claim(
                statement="a signal whose factor per layer is below one vanishes",
                quantity=f"{crossing}, at a factor of 0.5",
                unit="×",
                region=Region(most=1 / FACTOR),
                effect=0.5**DEPTH,
                observe=lambda runs, confidence: _sizes(runs[BELOW[0]], confidence),
                **common,
            ),
            Claim(
                statement="a signal whose factor per layer is above one explodes",
                quantity=f"{crossing}, at a factor of 2",
                unit="×",
                region=Region(least=FACTOR),
                effect=2.0**DEPTH,
                observe=lambda runs, confidence: _sizes(runs[ABOVE[0]], confidence),
                **common,
            ),
            Claim(
                statement="layers far from the output are frozen, with sigmoids",
                quantity=f"layers of {DEPTH} that stand still in the first {STEPS} steps; 0 if the first one moves",
                unit="layers",
                region=Region(least=HALF),
                refuted=(Region(most=TENTH),),
                scatter=SCATTER,
                observe=lambda runs, confidence: _still(runs[SIGMOID[0]], confidence, from_the_first=True),
                **common,
            ),
            Claim(
                statement="depth alone does not freeze layers: with tanh and Glorot weights hardly any stands still",
                quantity=f"layers of {DEPTH} that stand still in the first {STEPS} steps",
                unit="layers",
                region=Region(most=TENTH),
                refuted=(Region(least=HALF),),
                scatter=SCATTER,
                observe=lambda runs, confidence: _still(runs[TANH[0]], confidence),
                **common | {"evidence": Evidence.OURS},
            ),
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        values = measured(self.fresh(rows), self.cells(request))
        runs = {
            case[0]: [values[cell] for cell in self._cells(case, request) if values[cell]] for case in (*BARE, *TRAINED)
        }
        findings = [claim.judge(runs) for claim in self.claims(request)]
        title = f"Signal, gradient and unchanged layers at {DEPTH} layers"
        table = starts_table("vanishing", title, [(name, DEPTH, own) for name, own in runs.items()])
        return Conclusion(findings=findings, tables=[table] if any(runs.values()) else [])

    def _cells(self, case: StartCase, request: Request) -> list[Cell]:
        trains: dict[str, Any] = {"dataset": "digits", "recipe": FIRST_STEPS} if case in TRAINED else {}
        seeds = self.seeds(request, SEEDS)
        return [start_cell(case, DEPTH, seed, device=request.device, **trains) for seed in seeds]


def _sizes(runs: Sequence[Mapping[str, float]], confidence: float) -> Observation:
    return Observation(decisive=[size(way, runs, way, confidence) for way in SIZES] if runs else [])


def _still(runs: Sequence[Mapping[str, float]], confidence: float, *, from_the_first: bool = False) -> Observation:
    counts = [
        0.0 if from_the_first and run.get("still_first") != 1 else run["still_layers"]
        for run in runs
        if "still_layers" in run
    ]
    ways = [size(way, runs, way, confidence) for way in SIZES]
    return Observation(
        decisive=[mean("", counts, confidence, "layers")] if counts else [],
        reported=ways if runs else [],
        note=still_text(runs),
    )
