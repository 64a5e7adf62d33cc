"""Deep highway networks under various zero-mean weight distributions and activations: do they train?"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.families import make_family
from highway_bench.frames.rows import rows_of
from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.format import between, three
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.reproduce import drawing
from highway_bench.studies.reproduce.arms import TunedReproduction, columns, sgd, table_by
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
    by = ("block", "init", "activation")

    def arms(self, request: Request) -> dict[tuple[Any, ...], Candidate]:
        return {
            (block, init, activation): self.arm(
                request,
                block,
                "dense",
                depth=DEPTH,
                nominal_width=71,
                batch_size=100,
                dataset="mnist-5k",
                recipe=sgd(request.steps or STEPS, together=TOGETHER),
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
        runs = self.runs(rows, request)
        pairs = table_by(self.by, runs, pair_record)
        return runs, [_shown(pairs)], [_picture(rows_of(pairs))] if len(pairs) else []


def pair_record(runs: pd.DataFrame) -> dict[str, Any]:
    """What is further known of the runs of one pair; the mean loss is infinite where a seed diverged."""
    trained, loss = int(runs["success"].eq(1).sum()), float(10 ** np.log10(runs["final_loss"]).mean())
    return {"trained": trained, "interval": between(*wilson(trained, len(runs))), "loss": loss}


def _observe(runs: pd.DataFrame, confidence: float) -> Observation:
    trains = runs["success"].eq(1).groupby([runs[name] for name in Inits.by], sort=False).agg(["sum", "size"])
    of = {block: trains[trains.index.get_level_values("block") == block] for block in reversed(BLOCKS)}
    highway, plain = (
        rate(block, int(own["sum"].sum()), int(own["size"].sum()), confidence) for block, own in of.items()
    )
    some = of["highway"][of["highway"]["sum"] < of["highway"]["size"]]
    failing = ", ".join(f"{init} with {g} {k} of {n}" for (_, init, g), k, n in some.itertuples())
    return Observation(
        decisive=[highway],
        reported=[plain],
        untestable="" if len(of["highway"]) == len(PAIRS) // 2 else "not every pair has runs",
        note=f"fewer than all: {failing}" if failing else "",
    )


def _shown(pairs: pd.DataFrame) -> column.TextTable:
    shown = [
        *columns("block"),
        column.words("init", "weights"),
        column.words("activation", "g"),
        column.whole("trained", "seeds that train"),
        column.whole("n", "of"),
        column.words("interval", "95 % interval", "Wilson's, of the share that trains"),
        *columns("diverged"),
        column.number("loss", "final loss", "nat", "geometric mean; ∞ where a seed diverged"),
        *columns("rate", "edge"),
    ]
    return column.shown("inits", f"{DEPTH + 1} layers by weights and activation", pairs, shown)


def _picture(pairs: Sequence[column.Record]) -> Picture:
    """The share of seeds that train, one panel per block: rows are weights, columns activations."""
    title = f"{DEPTH + 1} layers: seeds that train, by weights and activation"
    with drawing.sheet(title, 2.5, {}, count=len(BLOCKS), sharey=True) as sheet:
        for axes, block in zip(sheet.axes, BLOCKS, strict=True):
            axes.set_title(block)
            axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS, rotation=30)
            axes.set_yticks(range(len(INITS)), INITS)
            axes.grid(visible=False)
            shares = np.full((len(INITS), len(ACTIVATIONS)), np.nan)
            for pair in (pair for pair in pairs if pair["block"] == block):
                y, x = INITS.index(pair["init"]), ACTIVATIONS.index(pair["activation"])
                shares[y, x] = pair["trained"] / pair["n"]
                loss = f"× {pair['diverged']}" if pair["diverged"] else three(pair["loss"])
                text, colour = f"{pair['trained']}/{pair['n']}\n{loss}", "white" if shares[y, x] > 0.5 else "black"
                axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color=colour)
            axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    alt = [f"{pair['block']}, {pair['init']}, {pair['activation']}: {pair['trained']} of {pair['n']}" for pair in pairs]
    return sheet.picture(
        "inits",
        f"Seeds that train. {drawing.joined(alt, 40)}",
        "Seeds that train, of those run. Second line: geometric mean of the final losses in nat; ×: diverged seeds.",
    )
