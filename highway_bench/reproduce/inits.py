"""Deep highway networks under various zero-mean weight distributions and activations: do they train?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.families import make_family
from highway_bench.measure.statistics import wilson
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, panels, settings
from highway_bench.report.format import between, three
from highway_bench.report.rows import groups, recipe_of
from highway_bench.reproduce._cells import edge, trained, tuned_sgd
from highway_bench.reproduce.base import Conclusion, Reproduction, register_reproduction
from highway_bench.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.reproduce.quantities import Quantity, Region, Statistic
from highway_bench.reproduce.request import Request

# Zero-mean distributions of W_H, as the dense family's inits: normal and uniform by the fan, orthogonal, a small normal
INITS = ("default", "uniform", "orthogonal", "small")
ACTIVATIONS = ("relu", "tanh", "sigmoid", "gelu")
DEPTH = 49  # 50 layers with the stem, as the papers count
STEPS, SEEDS, TOGETHER = 300, 5, 8
RATES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # for both blocks; highway's best was 1, plain's 0.01
SOURCE = "arXiv:1505.00387, §2.2"
VERSION = RuleVersion(2, "2026-11-23", seen=3)  # version 1 had rates whose best was at their edge

# A pair of init and activation trains if every seed ends at a tenth of chance's loss or below. It stands still if every
# seed ends above nine tenths of chance's loss, or diverges.
STILL = 0.9


@dataclass(frozen=True)
class Pair:
    """One init and activation of one block: ``trained`` of ``n`` seeds, and the geometric mean of their losses."""

    block: str
    init: str
    activation: str
    trained: int
    n: int
    loss: float  # infinite where a seed diverged
    rate: float
    still: bool  # no seed came below nine tenths of chance's loss

    @property
    def trains(self) -> bool:
        return self.n > 0 and self.trained == self.n


@register_reproduction("inits", title="Zero-mean weight distributions × activations, 50 layers", source=SOURCE)
class Inits(Reproduction):
    """50-layer dense networks on 4,000 MNIST digits, 300 steps of SGD at a rate tuned for each pair.

    Highway starts with the negative gate bias −ln L. Plain, with equal parameters per layer, is the control.
    """

    version = VERSION
    takes = frozenset({"seeds", "steps"})

    def cells(self, request: Request) -> list[Cell]:
        recipe = tuned_sgd(request.steps or STEPS, RATES, together=TOGETHER)
        grid = itertools.product(("highway", "plain"), INITS, ACTIVATIONS, self.seeds(request, SEEDS))
        return [
            trained(
                block,
                "dense",
                depth=DEPTH,
                nominal_width=71,
                batch_size=100,
                dataset="mnist-5k",
                seed=seed,
                recipe=recipe,
                device=request.device,
                family_options=_options(init, activation),
            )
            for block, init, activation, seed in grid
        ]

    def claims(self, request: Request) -> Sequence[Claim]:
        every = len(INITS) * len(ACTIVATIONS)
        return [
            Claim(
                statement="with a negative gate bias, highway trains very deep for various zero-mean distributions of "
                "W_H and various activations",
                source=SOURCE,
                quantity="share of highway's pairs that train at every seed (to contradict: that stand still)",
                unit="%",
                statistic=Statistic.SHARE,
                region=Region(least=100, closed=True),
                refuted=(Region(least=0),),
                observe=_observe,
                n=every,
                effect=100,
                version=self.version,
            )
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        pairs = list(pairs_of(self.fresh(rows)))
        return Conclusion(
            findings=[claim.judge(pairs) for claim in self.claims(request)],
            tables=[_shown(pairs)],
            pictures=[_picture(pairs)] if pairs else [],
        )


def _options(init: str, activation: str) -> dict[str, str]:
    """The family's options without those that equal its defaults, as in a cell."""
    return make_family("dense", init=init, activation=activation).options


def pairs_of(rows: pd.DataFrame) -> Iterator[Pair]:
    """The pairs in ``rows``, without the runs that only tune the rate."""
    final = rows[rows["trial"].isna() & (rows["axis"] == "")]
    chance = make_dataset("mnist-5k").chance_loss
    for group, part in groups(final, ("block", "family_options")):
        options = recipe_of(group["family_options"])
        success, losses, rates = (
            part.loc[part["metric"] == metric, "value"].to_numpy(np.float64)
            for metric in ("success", "final_loss", "rate")
        )
        finite = len(losses) > 0 and bool(np.isfinite(losses).all())
        yield Pair(
            group["block"],
            options.get("init", "default"),
            options.get("activation", "relu"),
            trained=int(np.nansum(success)),
            n=int(np.isfinite(success).sum()),
            loss=float(10 ** np.log10(losses).mean()) if finite else math.inf,
            rate=float(np.median(rates)) if len(rates) else math.nan,
            still=len(losses) > 0 and not bool((losses <= STILL * chance).any()),
        )


def _observe(pairs: Sequence[Pair], _: float) -> Observation:
    every = len(INITS) * len(ACTIVATIONS)
    highway = [pair for pair in pairs if pair.block == "highway" and pair.n]
    full, still = sum(pair.trains for pair in highway), [pair for pair in highway if pair.still]
    failing = ", ".join(f"{pair.init} with {pair.activation}" for pair in still)
    plain = sum(pair.trains for pair in pairs if pair.block == "plain")
    return Observation(
        decisive=[Quantity.exact("pairs that train", 100 * full / every, "%", every)] if highway else [],
        against=[Quantity.exact("pairs that stand still", 100 * len(still) / every, "%", every)],
        note="; ".join(filter(None, [f"standing still: {failing}" if failing else "", f"plain: {plain} of {every}"])),
    )


def _shown(pairs: Sequence[Pair]) -> column.Shown:
    records = [
        asdict(pair)
        | {"interval": between(*wilson(pair.trained, pair.n)) if pair.n else "", "edge": edge(pair.rate, RATES)}
        for pair in pairs
    ]
    columns = [
        column.words("block", "block"),
        column.words("init", "weights"),
        column.words("activation", "g"),
        column.whole("trained", "seeds that train"),
        column.whole("n", "of"),
        column.words("interval", "95 % interval", "Wilson's, of the share that trains"),
        column.number("loss", "final loss", "nat", "geometric mean; ∞ where a seed diverged"),
        column.number("rate", "rate"),
        column.words("edge", "edge of the rates", "where no rate trains, the lowest is taken"),
    ]
    return column.shown("inits", f"{DEPTH + 1} layers by weights and activation", pd.DataFrame(records), columns)


def _picture(pairs: Sequence[Pair]) -> Picture:
    """The share of seeds that train, one panel per block: rows are weights, columns activations."""
    blocks = [block for block in ("plain", "highway") if any(pair.block == block for pair in pairs)]
    alt = []
    with settings():
        figure, all_axes = panels(len(blocks), 2, 2.5, sharey=True)
        for axes, block in zip(all_axes, blocks, strict=True):
            axes.set_title(block)
            axes.set_xticks(range(len(ACTIVATIONS)), ACTIVATIONS, rotation=30)
            axes.set_yticks(range(len(INITS)), INITS)
            axes.grid(visible=False)
            shares = np.full((len(INITS), len(ACTIVATIONS)), np.nan)
            for pair in (pair for pair in pairs if pair.block == block and pair.n):
                y, x = INITS.index(pair.init), ACTIVATIONS.index(pair.activation)
                shares[y, x] = pair.trained / pair.n
                axes.text(
                    x,
                    y,
                    f"{pair.trained}/{pair.n}\n{three(pair.loss)}",
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if shares[y, x] > 0.5 else "black",
                )
                alt.append(f"{block}, {pair.init}, {pair.activation}: {pair.trained} of {pair.n}")
            axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
        counts = [
            f"{block} trains with {sum(pair.trains for pair in pairs if pair.block == block)} of "
            f"{sum(pair.block == block for pair in pairs)}"
            for block in blocks
        ]
        title = f"{DEPTH + 1} layers, pairs of weights and activations: {', '.join(counts)}"
        head(figure, title)
    return Picture(
        "inits",
        title,
        f"Seeds that train. {joined(alt, 40)}",
        "Seeds that train, of those run. Second line: geometric mean of the final losses in nat, ∞ if a run diverged.",
        figure,
    )
