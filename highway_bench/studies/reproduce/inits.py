"""Deep highway networks under various zero-mean weight distributions and activations: do they train?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from highway_bench.families import make_family
from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, panels, settings
from highway_bench.report.format import between, three
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.reproduce.arms import TunedReproduction, TunedRuns, diverged, sgd
from highway_bench.studies.reproduce.base import Evaluated, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Region, Statistic, rate
from highway_bench.studies.reproduce.request import Request
from highway_bench.success.ladder import TRAINABLE

# Zero-mean distributions of W_H, as the dense family's inits: normal and uniform by the fan, orthogonal, a small normal
INITS = ("default", "uniform", "orthogonal", "small")
ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu")
DEPTH = 49  # 50 layers with the stem, as the papers count
STEPS, SEEDS, TOGETHER = 300, 5, 8
BLOCKS = ("plain", "highway")
PAIRS = tuple(itertools.product(BLOCKS, INITS, ACTIVATIONS))
SOURCE = "arXiv:1505.00387, §2.2"


@dataclass(frozen=True)
class Pair:
    """One init and activation of one block: ``trained`` of ``n`` seeds, and the geometric mean of their losses."""

    block: str
    init: str
    activation: str
    trained: int
    n: int
    diverged: int
    loss: float  # infinite where a seed diverged
    rate: float
    edge: str  # of the rates that were tried

    @property
    def trains(self) -> bool:
        return self.n > 0 and self.trained == self.n


@register_reproduction("inits", title="Zero-mean weight distributions × activations, 50 layers", source=SOURCE)
class Inits(TunedReproduction):
    """50-layer dense networks on 4,000 MNIST digits, 300 steps of SGD at a rate tuned for each pair.

    Highway starts with the negative gate bias −ln L. Plain, with equal parameters per layer, is the control.
    """

    # Version 1 had rates whose best was at their edge. In version 2 a single run chose the rate, and three pairs
    # diverged. In version 3 every seed of every pair had to train, which 80 runs do in 45 % of cases if 99 % train
    version = RuleVersion(4, "2026-11-29", seen=8, known=True)
    takes = frozenset({"seeds", "steps"})
    default_seeds = SEEDS
    rates = (1.0, 0.3, 0.1)

    def arms(self, request: Request) -> dict[Hashable, Candidate]:
        return {
            (block, init, activation): self.arm(
                block,
                "dense",
                self.seeds(request),
                depth=DEPTH,
                nominal_width=71,
                batch_size=100,
                dataset="mnist-5k",
                recipe=sgd(request.steps or STEPS, together=TOGETHER),
                device=request.device,
                # Without those that equal the family's defaults, as in a cell
                family_options=make_family("dense", init=init, activation=activation).options,
            )
            for block, init, activation in PAIRS
        }

    def claims(self, request: Request) -> Sequence[Claim]:
        runs = len(INITS) * len(ACTIVATIONS) * len(self.seeds(request))
        return [
            Claim(
                statement="with a negative gate bias, highway trains very deep for various zero-mean distributions of "
                "W_H and various activations",
                source=SOURCE,
                quantity="rate of highway's runs of all pairs that train",
                unit="%",
                statistic=Statistic.RATE,
                region=Region(least=100 * TRAINABLE),
                observe=_observe,
                n=runs,
                effect=99,
                version=self.version,
            )
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        tuned = self.tuned_runs(rows, request)
        pairs = [pair_of(block, init, activation, tuned[block, init, activation]) for block, init, activation in PAIRS]
        return pairs, [_shown(pairs)], [_picture(pairs)] if any(pair.n for pair in pairs) else []


def pair_of(block: str, init: str, activation: str, tuned: TunedRuns) -> Pair:
    """The pair of ``block``, from its runs at the best of the tried rates."""
    runs = tuned.runs
    losses = [run["final_loss"] for run in runs.values()]
    return Pair(
        block,
        init,
        activation,
        trained=sum(run.get("success") == 1 for run in runs.values()),
        n=len(runs),
        diverged=diverged(runs),
        loss=float(10 ** np.log10(losses).mean()) if losses else math.nan,
        **tuned.rate,
    )


def _observe(pairs: Sequence[Pair], confidence: float) -> Observation:
    of = {block: [pair for pair in pairs if pair.block == block and pair.n] for block in BLOCKS}
    rates = {
        block: rate(block, sum(one.trained for one in own), sum(one.n for one in own), confidence)
        for block, own in of.items()
        if own
    }
    failing = [f"{one.init} with {one.activation} {one.trained} of {one.n}" for one in of["highway"] if not one.trains]
    return Observation(
        decisive=[rates.pop("highway")] if "highway" in rates else [],
        reported=list(rates.values()),
        untestable="" if len(of["highway"]) == len(PAIRS) // 2 else "not every pair has runs",
        note=f"fewer than all: {', '.join(failing)}" if failing else "",
    )


def _shown(pairs: Sequence[Pair]) -> column.TextTable:
    records = [asdict(pair) | {"interval": between(*wilson(pair.trained, pair.n)) if pair.n else ""} for pair in pairs]
    columns = [
        column.words("block", "block"),
        column.words("init", "weights"),
        column.words("activation", "g"),
        column.whole("trained", "seeds that train"),
        column.whole("n", "of"),
        column.words("interval", "95 % interval", "Wilson's, of the share that trains"),
        column.whole("diverged", "diverged"),
        column.number("loss", "final loss", "nat", "geometric mean; ∞ where a seed diverged"),
        column.number("rate", "rate"),
        column.words("edge", "edge of the rates", "the lowest or highest of those that were tried"),
    ]
    return column.shown("inits", f"{DEPTH + 1} layers by weights and activation", pd.DataFrame(records), columns)


def _picture(pairs: Sequence[Pair]) -> Picture:
    """The share of seeds that train, one panel per block: rows are weights, columns activations."""
    alt = []
    with settings():
        figure, all_axes = panels(len(BLOCKS), 2, 2.5, sharey=True)
        for axes, block in zip(all_axes, BLOCKS, strict=True):
            axes.set_title(block)
            axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS, rotation=30)
            axes.set_yticks(range(len(INITS)), INITS)
            axes.grid(visible=False)
            shares = np.full((len(INITS), len(ACTIVATIONS)), np.nan)
            for pair in (pair for pair in pairs if pair.block == block and pair.n):
                y, x = INITS.index(pair.init), ACTIVATIONS.index(pair.activation)
                shares[y, x] = pair.trained / pair.n
                loss = f"× {pair.diverged}" if pair.diverged else three(pair.loss)
                axes.text(
                    x,
                    y,
                    f"{pair.trained}/{pair.n}\n{loss}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if shares[y, x] > 0.5 else "black",
                )
                alt.append(f"{block}, {pair.init}, {pair.activation}: {pair.trained} of {pair.n}")
            axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
        title = f"{DEPTH + 1} layers: seeds that train, by weights and activation"
        head(figure, title)
    return Picture(
        "inits",
        title,
        f"Seeds that train. {joined(alt, 40)}",
        "Seeds that train, of those run. Second line: geometric mean of the final losses in nat; ×: diverged seeds.",
        figure,
    )
