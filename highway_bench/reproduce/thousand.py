"""More than a thousand layers: does stochastic gradient descent with momentum train a highway network?

The success by depth on a ladder up to such a network comes first, next to that of plain networks.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.decide.candidate import Candidate
from highway_bench.errors import BadInput
from highway_bench.frames.rows import of_task, rows_of
from highway_bench.frames.trainability import training_runs
from highway_bench.measure.statistics import log10_interval
from highway_bench.plan.grid import TRAINED
from highway_bench.plan.settings import FIRST_SGD_RATES
from highway_bench.report import columns as column
from highway_bench.report.format import count, three
from highway_bench.reproduce._cells import sgd, trained
from highway_bench.reproduce._success_ladder import success_picture, success_table, successes_of
from highway_bench.reproduce._tuned import RATE_HINT, TunedReproduction, with_edges
from highway_bench.reproduce.base import Conclusion, NotAttempted, register_reproduction
from highway_bench.reproduce.claims import Claim, Observation, RuleVersion
from highway_bench.reproduce.quantities import Quantity, Region, Share, Statistic
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES
from highway_bench.success.judging import TAIL, THRESHOLD

LADDER = (10, 20, 50, 100, 200, 500, 1_101)  # layers: one plain layer, and up to 1,100 layers with the block
DEEP = 1_000  # the claim is about networks with at least this number of block layers
STEPS, SEEDS = 200, 10
BATCH = TRAINED.batches["vector"]
BLOCKS = ("plain", "highway")
# Version 1 had one depth, and its best rate was at the edge of those tried. In version 2 a single run chose the rate,
# and plain's best rate was at that edge
VERSION = RuleVersion(3, "2026-11-25", seen=13)
DATASET = "mnist-5k"

# Chance is the constant predictor's loss, ln 10. A run trains if its final loss is at
# most THRESHOLD of chance.
MOVES = 0.5  # of chance: a run that does not train must end below this to be under way
STALLS_ABOVE = 0.9  # of chance: a run stalls if its final loss is above this
FIFTHS = 5  # a run is under way only if its mean loss falls from each fifth of the steps to the next

LONG = "arXiv:1507.06228, §2.2"


@register_reproduction("thousand", title="SGD does not stall beyond 1,000 layers", source=LONG)
class Thousand(TunedReproduction):
    """1 plain and 9 to 1,100 highway layers of 50 units on MNIST-5k, SGD with momentum, gate bias −ln L; and plain.

    The rate is tuned for both at every depth; the best rate is run on other seeds. The paper states no data, width,
    bias or curve of its pilot, so only "it does not stall" can be tested. Plain layers of the same depth are the
    control. Seeds train together where that is faster.
    """

    version = VERSION
    takes = frozenset({"depth", "steps", "seeds"})
    not_attempted = (
        NotAttempted(
            "a 900-layer highway network on CIFAR-100 shows no difficulty by epoch 80",
            "arXiv:1505.00387, second-hand",
            "the data are not here",
        ),
    )

    def arms(self, request: Request) -> dict[Hashable, Candidate]:
        if 1 in request.depth:
            raise BadInput("the depth counts the plain first layer, so it is 2 at least")
        recipe, seeds = sgd(request.steps or STEPS, together=SEEDS), self.seeds(request, SEEDS)
        found: dict[Hashable, Candidate] = {}
        for block, depth in itertools.product(BLOCKS, _depths(request)):
            template = trained(
                block,
                "dense",
                depth=depth,
                nominal_width=TRAINED.widths["vector"],
                batch_size=BATCH,
                dataset=DATASET,
                recipe=recipe,
                device=request.device,
            )
            found[block, depth] = Candidate(template, (depth,), FIRST_SGD_RATES, fresh=seeds, more=())
        return found

    def claims(self, request: Request) -> Sequence[Claim]:
        deep: list[int | None] = [depth for depth in _depths(request) if depth >= DEEP]
        return [_claim(depth, len(self.seeds(request, SEEDS))) for depth in deep or [None]]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        own = self.fresh(rows)
        ended, curves = training_runs(own), _curves(own)
        ended = ended[ended["status"].isin(OUTCOMES)]  # a failed run is no evidence about its network
        findings = [claim.judge((ended, curves)) for claim in self.claims(request)]
        successes = successes_of(ended)
        pictures = [success_picture(successes)] if any(len(one) > 1 for one in successes.values()) else []
        tables = [success_table(successes)] if any(successes.values()) else []
        tuned = self.tuned_runs(rows, request)
        table = _table(with_edges(ended, ("block", "depth"), tuned), curves)
        return Conclusion(findings=findings, tables=[*tables, table], pictures=pictures)


def _chance() -> float:
    return make_dataset(DATASET).chance_loss


def _curves(rows: pd.DataFrame) -> pd.DataFrame:
    """The finite part of the loss curves, without tuning runs: ``block``, ``depth``, ``seed``, ``step``, ``loss``."""
    frame = of_task(rows, "trainability")
    frame = frame[frame["trial"].isna() & (frame["axis"] == "step") & (frame["value"] > 0)]
    table = frame[["label", "depth", "seed", "index", "value"]]
    table = table.rename(columns={"label": "block", "index": "step", "value": "loss"})
    return table.sort_values(["block", "depth", "seed", "step"], ignore_index=True)


def _depths(request: Request) -> list[int]:
    return sorted({layers - 1 for layers in request.depth or LADDER})


def _claim(depth: int | None, seeds: int) -> Claim:
    """The claim at one depth, if one was requested that is deep enough. The plain networks are reported without a
    verdict: nothing is published about them at such a depth."""

    def observe(data: tuple[pd.DataFrame, pd.DataFrame], _: float) -> Observation:
        if depth is None:
            return Observation(untestable="no network of such a depth was requested")
        ended, curves = data
        results, parts = {}, []
        for block in ("highway", "plain"):
            own = ended[(ended["depth"] == depth) & (ended["block"] == block)]
            results[block] = [_result(record, curves, _chance()) for record in rows_of(own)]
            parts.append(f"{block}: {counted(results[block])}, final loss {_loss(own)} nat")

        def share(*names: str) -> list[Quantity]:
            own = results["highway"]
            count = sum(result in names for result in own)
            return [Share.of_runs(" or ".join(names), count, len(own))] if own else []

        return Observation(
            decisive=share("trains", "under way"),
            against=share("stalls", "diverges"),
            note=f"{count(depth + 1)} layers, {'; '.join(parts)}; chance {three(_chance())}",
        )

    return Claim(
        statement="SGD does not stall with more than 1,000 highway layers",
        source=LONG,
        quantity=f"share of seeds that end at or below {THRESHOLD:g} × chance, or below {MOVES:g} × chance with a "
        "lower mean loss in each fifth of the steps than before (to contradict: that end above "
        f"{STALLS_ABOVE:g} × chance or diverge)",
        unit="%",
        statistic=Statistic.SHARE,
        region=Region(least=100, closed=True),
        refuted=(Region(least=50, closed=True),),
        observe=observe,
        n=seeds,
        effect=100,
        version=VERSION,
    )


def _result(run: column.Record, curves: pd.DataFrame, chance: float) -> str:
    """The result of one run: trains, under way, stalls, diverges, or slow."""
    if column.missing(run["final_loss"]):
        return "diverges"
    if run["final_loss"] <= THRESHOLD * chance:
        return "trains"
    if run["final_loss"] > STALLS_ABOVE * chance:
        return "stalls"
    own = curves[
        (curves["block"] == run["block"]) & (curves["depth"] == run["depth"]) & (curves["seed"] == run["seed"])
    ]
    if len(own) < FIFTHS:  # too short for a trend
        return "slow"
    fifths = [float(part.mean()) for part in np.array_split(own["loss"].to_numpy(), FIFTHS)]
    falling = all(after < before for before, after in pairwise(fifths))
    return "under way" if falling and run["final_loss"] < MOVES * chance else "slow"


def counted(results: Sequence[str]) -> str:
    """The number of seeds with each result: "1 of 3 seeds stalls, 2 of 3 seeds train"."""
    counts = {result: results.count(result) for result in dict.fromkeys(results)}
    parts = [f"{count} of {len(results)} seeds {_verb(result, count)}" for result, count in counts.items()]
    return ", ".join(parts) or "no run ended"


def _verb(result: str, seeds: int) -> str:
    plural = {"trains": "train", "stalls": "stall", "diverges": "diverge"}.get(result)
    if plural is None:
        return "are " + result if seeds > 1 else "is " + result
    return plural if seeds > 1 else result


def _loss(own: pd.DataFrame) -> str:
    losses = own["final_loss"].dropna()
    return str(log10_interval(losses)) if len(losses) else "–"


def _table(ended: pd.DataFrame, curves: pd.DataFrame) -> column.Shown:
    """The table with one row per run."""
    results = [_result(record, curves, _chance()) for record in rows_of(ended)]
    table = ended.assign(layers=ended["depth"] + 1, result=results)
    columns = [
        column.words("block", "block"),
        column.whole("layers", "layers"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        column.whole("seed", "seed"),
        column.number("rate", "rate", hint=RATE_HINT),
        column.words("edge", "edge of the rates"),
        column.words("result", "outcome"),
        column.number("final_loss", "final loss", "nat", f"mean of the last {TAIL:.0%} of the steps"),
        column.whole("steps_to_threshold", "steps to threshold"),
        column.percent("train_accuracy", "train accuracy"),
        column.percent("test_accuracy", "test accuracy"),
        column.number("step_seconds", "step", "s"),
    ]
    note = f"{count(int(_steps(curves)))} steps in batches of {BATCH}." if len(curves) else ""
    return column.shown(
        "thousand-runs", "Every final run", table.sort_values(["layers", "block", "seed"]), columns, note=note
    )


def _steps(curves: pd.DataFrame) -> float:
    return float(curves["step"].max())
