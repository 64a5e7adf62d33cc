"""Gradients through x + g(xW + b): are they unattenuated, and do they keep their size?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from highway_bench.analysis.signal import FACTOR
from highway_bench.cell import Cell
from highway_bench.reproduce._measured import measured
from highway_bench.reproduce._starts import StartCase, size, start_cell, starts_table
from highway_bench.reproduce.base import Conclusion, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.reproduce.quantities import Region, Statistic
from highway_bench.reproduce.request import Request

DEPTHS, SEEDS = (10, 20, 50), 10
LECTURE = "a lecture on highway networks"
RELU: StartCase = ("x + ReLU(xW + b)", "residual", {}, 1.0)
TANH: StartCase = ("x + tanh(xW + b)", "residual", {"activation": "tanh"}, 1.0)
PLAIN: StartCase = ("ReLU(xW + b)", "plain", {}, 1.0)
HIGHWAY: StartCase = ("highway, gate bias −ln L", "highway", {}, 1.0)
CASES = (RELU, TANH, PLAIN, HIGHWAY)

RunsAtDepth = Mapping[tuple[str, int], Sequence[Mapping[str, float]]]
"""The metrics of the runs of a case, by its name, and a depth."""


@register_reproduction("unattenuated", title="Gradients through 10 to 50 residual layers at the start", source=LECTURE)
class Unattenuated(Reproduction):
    """Dense layers of 64 units before training: RMS of the gradient at the first layer's input over that at the last
    layer's output.

    The statement is true as it is written if the gradient does not shrink. That it roughly keeps its size is our
    reading of what it is stated for. Plain and highway layers are reported and decide nothing.
    """

    takes = frozenset({"depth", "seeds"})
    version = RuleVersion(1, "2026-11-23", seen=200)  # those below were seen while the rules were written

    def cells(self, request: Request) -> list[Cell]:
        return [
            start_cell(case, depth, seed, device=request.device)
            for case in CASES
            for depth in request.depth or DEPTHS
            for seed in self.seeds(request, SEEDS)
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        depths = request.depth or DEPTHS
        deepest = max(depths)
        common: dict[str, Any] = {
            "source": LECTURE,
            "unit": "×",
            "statistic": Statistic.MEAN,
            "n": len(self.seeds(request, SEEDS)),
            "version": self.version,
        }

        def at(case: StartCase, runs: RunsAtDepth, confidence: float, *depths: int) -> Observation:
            deepest_first = sorted(depths, reverse=True)
            known = [(depth, runs[case[0], depth]) for depth in deepest_first if runs[case[0], depth]]
            return Observation(
                decisive=[size(f"{depth} layers", own, "gradient", confidence) for depth, own in known],
                untestable="" if len(known) == len(depths) else "not measured at every depth",
            )

        def as_worded(seen: Observation) -> Observation:
            """The factor at the deepest network, which comes first, says what the statement leaves out."""
            if not seen.decisive or not seen.decisive[0].low > FACTOR:
                return seen
            first = replace(
                seen.decisive[0], name=f"true as worded, but the gradient explodes: {seen.decisive[0].name}"
            )
            return replace(seen, decisive=[first, *seen.decisive[1:]])

        across = "RMS of the gradient at the first layer over that at the last"
        return [
            Claim(
                statement="x + g(xW + b) passes gradients unattenuated",
                evidence=Evidence.SECONDARY,
                quantity=f"{across}, with ReLU, at every depth",
                region=Region(least=1.0),
                observe=lambda runs, confidence: as_worded(at(RELU, runs, confidence, *depths)),
                **common,
            ),
            *(
                Claim(
                    statement=f"gradients through x + g(xW + b) change by less than {FACTOR:g} times, with {name}",
                    evidence=Evidence.OURS,
                    quantity=f"{across}, at {deepest} layers",
                    region=Region(1 / FACTOR, FACTOR),
                    refuted=(Region(most=1 / FACTOR), Region(least=FACTOR)),
                    effect=1.0,
                    observe=lambda runs, confidence, case=case: at(case, runs, confidence, deepest),  # type: ignore[misc]
                    **common,
                )
                for name, case in (("ReLU", RELU), ("tanh", TANH))
            ),
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        values = measured(self.fresh(rows), self.cells(request))
        runs = {
            (case[0], depth): [
                values[cell]
                for seed in self.seeds(request, SEEDS)
                if values[cell := start_cell(case, depth, seed, device=request.device)]
            ]
            for case in CASES
            for depth in request.depth or DEPTHS
        }
        findings = [claim.judge(runs) for claim in self.claims(request)]
        known = [(name, depth, own) for (name, depth), own in runs.items() if own]
        table = starts_table("unattenuated", "Signal and gradient across the stack, before training", known)
        return Conclusion(findings=findings, tables=[table] if known else [])
