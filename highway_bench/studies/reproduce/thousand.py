"""More than a thousand layers: does stochastic gradient descent with momentum train a highway network?

The success by depth on a ladder up to such a network comes first, next to that of plain networks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.frames.rows import of_task
from highway_bench.measure.statistics import Array, log10_interval, wilson
from highway_bench.plan.grid import TRAINED
from highway_bench.plan.settings import FIRST_SGD_RATES
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.format import count, signed, three
from highway_bench.studies.decide.candidate import Candidate
from highway_bench.studies.reproduce import drawing
from highway_bench.studies.reproduce.arms import TunedReproduction, columns, of_arm, sgd
from highway_bench.studies.reproduce.base import Evaluated, NotAttempted, register_reproduction
from highway_bench.studies.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.studies.reproduce.quantities import Quantity, Region, Share, Statistic
from highway_bench.studies.reproduce.request import Request
from highway_bench.success.judging import TAIL, THRESHOLD
from highway_bench.success.ladder import TRAINABLE, Success, l50, largest_rise

LADDER = (10, 20, 50, 100, 200, 500, 1_101)  # layers: one plain layer, and up to 1,100 layers with the block
DEEP = 1_000  # the claim is about networks with at least this number of block layers
STEPS, SEEDS = 200, 10
BATCH = TRAINED.batches["vector"]
BLOCKS = ("plain", "highway")
BIASES = {f"highway gate_bias={bias}": bias for bias in (-1, -2, -3)}
"""Gate biases of the papers, in addition to −ln L, at more than a thousand layers."""
DATASET = "mnist-5k"
CHANCE = make_dataset(DATASET).chance_loss

# Chance is the constant predictor's loss, ln 10. A run trains if its final loss is at
# most THRESHOLD of chance.
MOVES = 0.5  # of chance: a run that does not train must end below this to be under way
STALLS_ABOVE = 0.9  # of chance: a run stalls if its final loss is above this
FIFTHS = 5  # a run is under way only if its mean loss falls from each fifth of the steps to the next

LONG = "arXiv:1507.06228, §2.2"


@register_reproduction("thousand", title="SGD does not stall beyond 1,000 layers", source=LONG)
class Thousand(TunedReproduction):
    """1 plain and 9 to 1,100 highway layers of 50 units on MNIST-5k, SGD with momentum, gate bias −ln L; and plain.
    Beyond 1,000 layers the gate biases −1, −2 and −3 too.

    The rate is tuned for both at every depth; the best rate is run on other seeds. The paper states no data, width,
    bias or curve of its pilot, so only "it does not stall" can be tested. Plain layers of the same depth are the
    control. Seeds train together where that is faster.
    """

    # Version 1 had one depth, and its best rate was at the edge of those tried. In version 2 a single run chose the
    # rate, and plain's best rate was at that edge
    version = RuleVersion(3, "2026-11-25", seen=13)
    takes = frozenset({"depth", "steps", "seeds"})
    default_seeds = SEEDS
    rates = FIRST_SGD_RATES
    by = ("block", "depth")
    not_attempted = (
        NotAttempted(
            "a 900-layer highway network on CIFAR-100 shows no difficulty by epoch 80", "arXiv:1505.00387, second-hand"
        ),
    )

    def arms(self, request: Request) -> dict[tuple[Any, ...], Candidate]:
        if 1 in request.depth:
            raise BadInput("the depth counts the plain first layer, so it is 2 at least")

        def arm(block: str, depth: int, **cell: Any) -> Candidate:
            return self.arm(
                request,
                block,
                "dense",
                depth=depth,
                nominal_width=TRAINED.widths["vector"],
                batch_size=BATCH,
                dataset=DATASET,
                recipe=sgd(request.steps or STEPS, together=SEEDS),
                **cell,
            )

        arms = {(block, depth): arm(block, depth) for block, depth in itertools.product(BLOCKS, _depths(request))}
        deep = itertools.product(BIASES.items(), _deep(request))
        return arms | {
            (name, depth): arm("highway", depth, block_options={"gate_bias": bias}) for (name, bias), depth in deep
        }

    def claims(self, request: Request) -> Sequence[Claim]:
        deep, at_bias = _deep(request), {"version": self.version._replace(date="2026-12-01")}
        own: list[int | None] = [*deep] or [None]
        return [
            *(_claim(depth, "highway", **self.design(request)) for depth in own),
            *(_claim(depth, name, **(self.design(request) | at_bias)) for name in BIASES for depth in deep),
        ]

    def evaluated(self, rows: pd.DataFrame, request: Request) -> Evaluated:
        runs, curves = self.runs(rows, request), _curves(self.fresh(rows))
        named = runs[["block", "depth", "seed"]].itertuples(index=False, name=None)
        runs["result"] = [result_of(loss, curves.get(run)) for loss, run in zip(runs["final_loss"], named, strict=True)]
        runs["layers"] = runs["depth"] + 1
        successes = successes_of(runs)
        pictures = [success_picture(successes)] if any(len(one) > 1 for one in successes.values()) else []
        tables = [success_table(successes)] if successes else []
        return runs, [*tables, _table(runs, request.steps or STEPS)], pictures


def _curves(rows: pd.DataFrame) -> dict[Any, Array]:
    """The finite part of the loss curves, without tuning runs, by block, depth and seed."""
    frame = of_task(rows, "trainability")
    frame = frame[frame["trial"].isna() & (frame["axis"] == "step") & (frame["value"] > 0)].sort_values("index")
    return {run: own["value"].to_numpy(float) for run, own in frame.groupby(["label", "depth", "seed"])}


def _depths(request: Request) -> list[int]:
    return sorted({layers - 1 for layers in request.depth or LADDER})


def _deep(request: Request) -> list[int]:
    """The depths of more than a thousand layers."""
    return [depth for depth in _depths(request) if depth >= DEEP]


def _claim(depth: int | None, block: str, **design: Any) -> Claim:
    """The claim on ``block`` at one depth, if one was requested that is deep enough. Plain networks are reported
    without a verdict: nothing is published about them at such a depth."""

    def observe(runs: pd.DataFrame, _: float) -> Observation:
        if depth is None:
            return Observation(untestable="no network of such a depth was requested")
        own = {name: of_arm(runs, depth=depth, block=name) for name in (block, "plain")}
        parts = [f"{name}: {counted(list(one['result']))}, final loss {_loss(one)} nat" for name, one in own.items()]

        def share(*names: str) -> list[Quantity]:
            results = own[block]["result"]
            count = int(results.isin(names).sum())
            return [Share.of_runs(" or ".join(names), count, len(results))]

        return Observation(
            decisive=share("trains", "under way"),
            against=share("stalls", "diverges"),
            note=f"{count(depth + 1)} layers, {'; '.join(parts)}; chance {three(CHANCE)}",
        )

    return Claim(
        statement="SGD does not stall with more than 1,000 highway layers"
        + (f", at bias {signed(BIASES[block])}" if block in BIASES else ""),
        source=LONG,
        quantity=f"share of seeds that end at or below {THRESHOLD:g} × chance, or below {MOVES:g} × chance with a "
        "lower mean loss in each fifth of the steps than before (to contradict: that end above "
        f"{STALLS_ABOVE:g} × chance or diverge)",
        unit="%",
        statistic=Statistic.SHARE,
        region=Region(least=100, closed=True),
        refuted=(Region(least=50, closed=True),),
        observe=observe,
        effect=100,
        **design,
    )


def result_of(final_loss: float, curve: Array | None) -> str:
    """The result of one run: trains, under way, stalls, diverges, or slow."""
    if math.isinf(final_loss):
        return "diverges"
    if final_loss <= THRESHOLD * CHANCE:
        return "trains"
    if final_loss > STALLS_ABOVE * CHANCE:
        return "stalls"
    if curve is None or len(curve) < FIFTHS:  # too short for a trend
        return "slow"
    fifths = [float(part.mean()) for part in np.array_split(curve, FIFTHS)]
    falling = all(after < before for before, after in pairwise(fifths))
    return "under way" if falling and final_loss < MOVES * CHANCE else "slow"


def counted(results: Sequence[str]) -> str:
    """The number of seeds with each result: "1 of 3 seeds stalls, 2 of 3 seeds train"."""
    parts = [f"{count} of {len(results)} seeds {_verb(result, count)}" for result, count in Counter(results).items()]
    return ", ".join(parts) or "no run ended"


def _verb(result: str, seeds: int) -> str:
    if not result.endswith("s"):
        return f"is {result}" if seeds == 1 else f"are {result}"
    return result if seeds == 1 else result.removesuffix("s")


def _loss(runs: pd.DataFrame) -> str:
    losses = runs["final_loss"][np.isfinite(runs["final_loss"])]
    return str(log10_interval(losses)) if len(losses) else "–"


def _table(runs: pd.DataFrame, steps: int) -> column.TextTable:
    """The table with one row per run."""
    table = runs.sort_values(["layers", "block", "seed"])
    table["final_loss"] = table["final_loss"].replace(math.inf, math.nan)
    shown = [
        *columns("block"),
        column.whole("layers", "layers"),
        *columns("width", "params"),
        column.whole("seed", "seed"),
        *columns("rate", "edge"),
        column.words("result", "outcome"),
        column.number("final_loss", "final loss", "nat", f"mean of the last {TAIL:.0%} of the steps"),
        column.whole("steps_to_threshold", "steps to threshold"),
        column.percent("train_accuracy", "train accuracy"),
        column.percent("test_accuracy", "test accuracy"),
        *columns("step_seconds"),
    ]
    note = f"{count(steps)} steps in batches of {BATCH}."
    return column.shown("thousand-runs", "Every final run", table, shown, note=note)


# -------------------------------------------------------------------------------------------------- success by depth

SuccessByBlock = Mapping[str, Success]
"""Runs that succeed, and runs, by block and layers. The plain first layer counts, as in the papers."""


def successes_of(runs: pd.DataFrame) -> dict[str, Success]:
    """The successes of the runs that ended, by block and layers."""
    by_block: dict[str, dict[int, tuple[int, int]]] = {}
    for key, own in runs.groupby(["block", "layers"]):
        block, layers = cast(tuple[str, int], key)
        by_block.setdefault(block, {})[int(layers)] = int(own["success"].sum()), len(own)
    return {**by_block}


def l50_text(success: Success) -> str:
    """L50 in layers, with its interval."""
    return str(l50(success)) if len(success) > 1 else "–"


RISES = 0.05
"""The level at which a rise of success with depth is stated."""


def rise_text(success: Success) -> str:
    """The largest rise of success with depth, with the p value of a success that never rises: "3 of 10 at 20 layers,
    8 of 10 at 200 (monotone over all depths: p = 0.03)"; empty if there is none."""
    rise = largest_rise(success) if success else None
    if rise is None:
        return ""
    ends = [f"{k} of {n}" for k, n in (success[rise.shallow], success[rise.deep])]
    text = f"{ends[0]} at {count(rise.shallow)} layers, {ends[1]} at {count(rise.deep)}"
    text += f" (monotone over all depths: p = {rise.p:.2g})"
    return text if rise.p < RISES else f"{text}, not more than chance gives"


def success_table(successes: SuccessByBlock) -> column.TextTable:
    """One row per block: its successes by depth, L50, and where success rises with depth."""
    layers = sorted({depth for success in successes.values() for depth in success})
    records: list[dict[str, Any]] = [
        {"block": block, "l50": l50_text(success), "rise": rise_text(success) or "none"}
        | {str(depth): f"{success[depth][0]} of {success[depth][1]}" for depth in layers if depth in success}
        for block, success in successes.items()
    ]
    shown = [
        *columns("block"),
        *(column.words(str(depth), f"{count(depth)} layers") for depth in layers),
        column.words("l50", "L50", "layers at which half of the runs succeed, with a 95 % bootstrap interval"),
        column.words("rise", "where success rises with depth"),
    ]
    note = (
        "Seeds that train, of those that ended. Success usually falls with depth; the last column names where it rises."
    )
    return column.shown("thousand-success", "Success by depth", pd.DataFrame(records), shown, note=note)


def success_picture(successes: SuccessByBlock) -> Picture:
    """The share of seeds that train against depth: a mark per block and depth with Wilson's interval."""
    styles = drawing.styles(list(successes))
    layers = sorted({depth for success in successes.values() for depth in success})
    with drawing.sheet("Share of seeds that train, by depth", 2.8, styles) as sheet:
        (axes,) = sheet.axes
        drawing.level(axes, TRAINABLE, f"trains: {TRAINABLE:.0%}")
        for number, (block, success) in enumerate(successes.items()):
            at = [layers.index(depth) + drawing.dodge(number, len(successes), 0.2) for depth in sorted(success)]
            shares = [Quantity("", k / n, *wilson(k, n), n) for _, (k, n) in sorted(success.items())]
            drawing.line(axes, at, shares, styles[block])
        axes.set_xticks(range(len(layers)), [count(depth) for depth in layers])
        axes.set_ylim(-0.06, 1.06)
        axes.set_xlabel("layers (not to scale)")
        axes.set_ylabel("share of seeds that train")
    every = [(block, depth, k, n) for block, success in successes.items() for depth, (k, n) in sorted(success.items())]
    alt = drawing.joined([f"{block}, {depth} layers: {k} of {n}" for block, depth, k, n in every], 40)
    runs = " or ".join(map(str, sorted({n for *_, n in every})))
    caption = f"Of {runs} seeds; bars are Wilson's 95 % intervals. " + " ".join(
        f"Rise with depth, {block}: {rise_text(success) or 'none'}." for block, success in successes.items()
    )
    return sheet.picture("thousand-success", f"Success by depth. {alt}", caption)
