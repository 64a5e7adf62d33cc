"""Networks at their start: what a stack of layers does to the signal and to the gradient.

``vanishing`` has products of factors below and above one over 50 layers, and layers that the first steps leave
unchanged; ``unattenuated`` has gradients through x + g(xW + b) and through gated layers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from highway_bench.analysis.signal import FACTOR
from highway_bench.cell import Cell
from highway_bench.report import columns as column
from highway_bench.studies.reproduce.base import Evaluated, Metrics, Reproduction, measured, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Evidence, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Quantity, Region, Statistic, mean
from highway_bench.studies.reproduce.request import Request

LECTURE, HIGHWAYS = "a lecture on highway networks", "arXiv:1505.00387"
WIDTH, BATCH = 64, 64
DEPTH, STEPS = 50, 20  # of vanishing
DEPTHS = (10, 20, 50)  # of unattenuated
FIRST_STEPS = {"optimiser": "sgd", "rate": 0.01, "momentum": 0.0, "decay": 1.0, "steps": STEPS}
HALF, TENTH = DEPTH / 2, DEPTH / 10  # layers
SCATTER = 2.0  # layers between seeds that stand still

SIZES = {"signal": "activation_ratio", "gradient": "gradient_ratio"}
"""What crosses the stack: the signal from the first layer to the last, the gradient back."""

StartRuns = Sequence[Metrics]
RunsAtDepth = Mapping[tuple[str, int], StartRuns]
"""The metrics of the runs of a case, by its name, and a depth."""


class StartCase(NamedTuple):
    """Layers with a ``block`` of a ``gate_bias`` (its own default without one), the options of their family, and the
    factor of their initial weights. With ``trains``, the network also trains for a few steps on digits."""

    name: str
    block: str = "plain"
    options: Mapping[str, Any] = {}
    gate_bias: float | None = None
    gain: float = 1.0
    trains: bool = False


class AtStart(Reproduction):
    """A reproduction of dense networks of 64 units at their start, of which each of ``cases`` is measured."""

    cases: ClassVar[Sequence[StartCase]]
    table_title: ClassVar[str]
    default_seeds = 10
    version = RuleVersion(1, "2026-11-23", seen=200)  # those below were seen while the rules were written

    def depths(self, request: Request) -> Sequence[int]:
        """The numbers of layers."""
        return request.depth or DEPTHS

    def cells(self, request: Request) -> list[Cell]:
        return list(itertools.chain.from_iterable(self._cells(request).values()))

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        cells = self._cells(request)
        values = measured(self.fresh(rows), itertools.chain.from_iterable(cells.values()))
        runs = {arm: [values[cell] for cell in own if values[cell]] for arm, own in cells.items()}
        return runs, [starts_table(self.name, self.table_title, runs)] if any(runs.values()) else [], []

    def _cells(self, request: Request) -> dict[tuple[str, int], list[Cell]]:
        return {
            (case.name, depth): [
                Cell(
                    task="propagation",
                    block=case.block,
                    block_options={} if case.gate_bias is None else {"gate_bias": case.gate_bias},
                    family="dense",
                    family_options=case.options,
                    depth=depth,
                    width=WIDTH,
                    nominal_width=WIDTH,
                    match="width",
                    batch_size=BATCH,
                    dtype="float64",
                    dataset="digits" if case.trains else None,
                    recipe={"gain": case.gain, **(FIRST_STEPS if case.trains else {})},
                    device=request.device,
                    seed=seed,
                )
                for seed in self.seeds(request)
            ]
            for case in self.cases
            for depth in self.depths(request)
        }


def size(name: str, runs: StartRuns, way: str, confidence: float) -> Quantity:
    """The geometric mean, with its interval, of the factor by which signal or gradient changes across the stack."""
    return mean(name, [run[SIZES[way]] for run in runs if SIZES[way] in run], confidence, "×")


def starts_table(name: str, title: str, runs_at_depth: RunsAtDepth) -> column.TextTable:
    """One row per case and depth: what crosses the stack, and how many layers the first steps leave unchanged."""
    records = []
    for (case, depth), runs in runs_at_depth.items():
        still = [run["still_layers"] for run in runs if "still_layers" in run]
        record: dict[str, Any] = {"case": case, "depth": depth, "n": len(runs), "still": mean("", still).value}
        for way, metric in SIZES.items():
            known = [run[metric] for run in runs if run.get(metric, 0) > 0]
            record |= mean("", known, unit="×").columns(way, f"{way}_")
        records += [record] if runs else []
    columns = [
        column.words("case", "network"),
        column.whole("depth", "layers"),
        column.spread("signal", "signal ×", "signal_low", "signal_high", "1", hint="RMS of x_L over that of x₀"),
        column.spread(
            "gradient", "gradient ×", "gradient_low", "gradient_high", "1", hint="RMS of dL/dx₀ over that of dL/dx_L"
        ),
        column.number("still", "layers that stand still", "layers", "mean over seeds"),
        column.whole("n", "seeds"),
    ]
    return column.shown(name, title, pd.DataFrame(records), columns, note="Geometric means and 95 % over seeds.")


# ------------------------------------------------------------------------------------------------------- vanishing

BELOW = StartCase("ReLU, He weights × 0.5", gain=0.5)
ABOVE = StartCase("ReLU, He weights × 2", gain=2.0)
SIGMOID = StartCase("sigmoid, Glorot weights", options={"activation": "sigmoid"}, trains=True)
TANH = StartCase("tanh, Glorot weights", options={"activation": "tanh"}, trains=True)


@register_reproduction(
    "vanishing",
    title="Signals that vanish and explode over 50 layers, and layers that stand still",
    source=LECTURE,
)
class Vanishing(AtStart):
    """50 dense plain layers of 64 units, before training, and in the first 20 steps of SGD on digits.

    Initial weights are multiplied by 0.5, 1 and 2, which is the factor by which a ReLU layer changes the signal. In
    the first steps, a layer stands still if its relative change is less than a hundredth of the largest one.
    """

    takes = frozenset({"seeds"})
    cases = (BELOW, StartCase("ReLU, He weights"), ABOVE, SIGMOID, TANH)
    table_title = f"Signal, gradient and unchanged layers at {DEPTH} layers"

    def depths(self, request: Request) -> Sequence[int]:
        return (DEPTH,)

    def claims(self, request: Request) -> Sequence[Claim]:
        across = f"RMS of the signal after {DEPTH} layers over that before, and of the gradient in the other direction"
        still = f"layers of {DEPTH} that stand still in the first {STEPS} steps"
        claim = partial(Claim, source=LECTURE, statistic=Statistic.MEAN, **self.design(request))
        sizes = partial(claim, evidence=Evidence.SECONDARY, unit="×")
        layers = partial(claim, unit="layers", scatter=SCATTER)
        return [
            sizes(
                statement="a signal whose factor per layer is below one vanishes",
                quantity=f"{across}, at a factor of 0.5",
                region=Region(most=1 / FACTOR),
                effect=0.5**DEPTH,
                observe=partial(_sizes, BELOW),
            ),
            sizes(
                statement="a signal whose factor per layer is above one explodes",
                quantity=f"{across}, at a factor of 2",
                region=Region(least=FACTOR),
                effect=2.0**DEPTH,
                observe=partial(_sizes, ABOVE),
            ),
            layers(
                statement="layers far from the output are frozen, with sigmoids",
                evidence=Evidence.SECONDARY,
                quantity=f"{still}; 0 if the first one moves",
                region=Region(least=HALF),
                refuted=(Region(most=TENTH),),
                observe=partial(_still, SIGMOID, from_the_first=True),
            ),
            layers(
                statement="depth alone does not freeze layers: with tanh and Glorot weights hardly any stands still",
                evidence=Evidence.OURS,
                quantity=still,
                region=Region(most=TENTH),
                refuted=(Region(least=HALF),),
                observe=partial(_still, TANH),
            ),
        ]


def _sizes(case: StartCase, every: RunsAtDepth, confidence: float) -> Observation:
    runs = every[case.name, DEPTH]
    return Observation(decisive=[size(way, runs, way, confidence) for way in SIZES])


def _still(case: StartCase, every: RunsAtDepth, confidence: float, *, from_the_first: bool = False) -> Observation:
    runs = every[case.name, DEPTH]
    counts = [
        0.0 if from_the_first and run.get("still_first") != 1 else run["still_layers"]
        for run in runs
        if "still_layers" in run
    ]
    first, last = ([run.get(name, math.nan) for run in runs] for name in ("still_first", "still_last"))
    in_all = bool(runs) and max(first) <= min(last) and not any(map(math.isnan, [*first, *last]))
    return Observation(
        decisive=[mean("", counts, confidence, "layers")],
        reported=_sizes(case, every, confidence).decisive,
        note=f"layers {max(first):.0f} to {min(last):.0f}" if in_all else "",  # that stand still in all runs
    )


# ---------------------------------------------------------------------------------------------------- unattenuated

RELU = StartCase("x + ReLU(xW + b)", "residual")
RESIDUAL_TANH = StartCase("x + tanh(xW + b)", "residual", {"activation": "tanh"})
AT_BIAS = StartCase("highway, gate bias −2", "highway", gate_bias=-2)
BY_DEPTH = StartCase("highway, gate bias −ln L", "highway")
SHUT = StartCase("highway, gates shut", "highway", gate_bias=-100)
ROUNDING = 1e-12


@register_reproduction("unattenuated", title="Gradients through 10 to 50 residual layers at the start", source=LECTURE)
class Unattenuated(AtStart):
    """Dense layers of 64 units before training: RMS of the gradient at the first layer's input over that at the last
    layer's output.

    The statement of the lecture is true as it is written if the gradient does not shrink. That it roughly keeps its
    size is our reading of what it is stated for, and of "unimpeded". Plain layers are reported and decide nothing.
    """

    version = RuleVersion(2, "2026-12-01", seen=210)  # version 1 had no claims on gates, and its rows were seen
    takes = frozenset({"depth", "seeds"})
    cases = (RELU, RESIDUAL_TANH, StartCase("ReLU(xW + b)"), BY_DEPTH, AT_BIAS, SHUT)
    table_title = "Signal and gradient across the stack, before training"

    def claims(self, request: Request) -> Sequence[Claim]:
        deepest_first = sorted(self.depths(request), reverse=True)
        claim = partial(Claim, source=LECTURE, unit="×", statistic=Statistic.MEAN, **self.design(request))
        refuted = (Region(most=1 / FACTOR), Region(least=FACTOR))
        steady = partial(claim, evidence=Evidence.OURS, region=Region(1 / FACTOR, FACTOR), refuted=refuted, effect=1.0)
        across = "RMS of the gradient at the first layer over that at the last"
        return [
            claim(
                statement="x + g(xW + b) passes gradients unattenuated",
                evidence=Evidence.SECONDARY,
                quantity=f"{across}, with ReLU, at every depth",
                region=Region(least=1.0),
                observe=lambda runs, confidence: _as_worded(_gradients(RELU, deepest_first, runs, confidence)),
            ),
            *(
                steady(
                    statement=f"{words} change by less than {FACTOR:g} times, {where}",
                    source=source,
                    quantity=f"{across}, at {deepest_first[0]} layers",
                    observe=partial(_gradients, case, deepest_first[:1]),
                )
                for words, where, source, case in (
                    ("gradients through x + g(xW + b)", "with ReLU", LECTURE, RELU),
                    ("gradients through x + g(xW + b)", "with tanh", LECTURE, RESIDUAL_TANH),
                    ("gradients flow unimpeded: they", "at bias −2", HIGHWAYS, AT_BIAS),
                    ("gradients flow unimpeded: they", "at bias −ln L", HIGHWAYS, BY_DEPTH),
                )
            ),
            steady(
                statement="gates stabilise: the signal keeps its size to a factor of "
                f"{FACTOR:g}, at bias −ln L, where it explodes through x + ReLU(xW + b)",
                quantity=f"RMS of the signal after {deepest_first[0]} layers over that before",
                observe=partial(_stabilised, deepest_first[0]),
            ),
            claim(
                statement="equation 5: the Jacobian of a layer whose gate is shut is the identity",
                source=f"{HIGHWAYS}, eq. 5",
                evidence=Evidence.COMPUTED,
                statistic=Statistic.EXACT,
                quantity="largest distance from 1 of a singular value of all layers together, at bias −100",
                unit="",
                region=Region(most=ROUNDING),
                refuted=(Region(least=1e-6),),
                observe=partial(_identity, deepest_first[0]),
            ),
        ]


def _gradients(case: StartCase, depths: Sequence[int], runs: RunsAtDepth, confidence: float) -> Observation:
    known = [(depth, runs[case.name, depth]) for depth in depths if runs[case.name, depth]]
    return Observation(
        decisive=[size(f"{depth} layers", own, "gradient", confidence) for depth, own in known],
        untestable="" if len(known) == len(depths) else "not measured at every depth",
    )


def _stabilised(depth: int, runs: RunsAtDepth, confidence: float) -> Observation:
    """The signal through gates, and for comparison through residual layers, which must explode."""
    gated, residual = (size(case.name, runs[case.name, depth], "signal", confidence) for case in (BY_DEPTH, RELU))
    unlike = "" if residual.low > FACTOR else "it does not explode without gates either"
    return Observation(decisive=[gated], reported=[residual], unlike=unlike)


def _identity(depth: int, runs: RunsAtDepth, confidence: float) -> Observation:
    own = [run for run in runs[SHUT.name, depth] if "jacobian_largest" in run]
    away = [max(abs(run[name] - 1) for name in ("jacobian_largest", "jacobian_smallest")) for run in own]
    return Observation(decisive=[Quantity.exact("", max(away, default=math.nan), n=len(own))])


def _as_worded(seen: Observation) -> Observation:
    """The factor at the deepest network, which comes first, says what the statement leaves out."""
    if not seen.decisive or not seen.decisive[0].low > FACTOR:
        return seen
    first = replace(seen.decisive[0], name=f"true as worded, but the gradient explodes: {seen.decisive[0].name}")
    return replace(seen, decisive=[first, *seen.decisive[1:]])
