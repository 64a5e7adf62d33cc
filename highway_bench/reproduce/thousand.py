"""More than a thousand layers: plain stochastic gradient descent with momentum does not stall on a highway network."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.measure.statistics import log10_interval
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import TRAINED, Grid, Profile
from highway_bench.plan.selection import Selection
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, legend, log_axis, panels, settings
from highway_bench.report.format import count, listed, three
from highway_bench.report.rows import of_task, rows_of
from highway_bench.report.style import styles
from highway_bench.report.tables.trainability import training_runs
from highway_bench.reproduce.base import (
    Conclusion,
    Evidence,
    Finding,
    NotAttempted,
    Reproduction,
    Verdict,
    register_reproduction,
)
from highway_bench.reproduce.request import Request
from highway_bench.results.schema import OUTCOMES

LAYERS = 1_101  # one plain layer and 1,100 that the block joins
DEEP = 1_000  # layers joined from which the claim is about a network
STEPS, SEEDS = 200, 3
RATES = (1.0, 0.3, 0.1, 0.01)  # gated stacks like the upper end, deep plain ones the lower
DATASET = "mnist-5k"

# The rules, agreed before any run. Chance is the constant predictor's loss, ln 10.
TRAINS = 0.1  # of chance: a run whose final loss is at most this has trained
MOVES = 0.5  # of chance: a run must be below this to have left it, if it does not train within the budget
STALLS = 0.9  # of chance: a final loss above it is a stall
FIFTHS = 5  # a run that is under way still has a lower mean loss in each fifth of the steps than in the one before

LONG = "arXiv:1507.06228, §3.1"
CLAIM = "SGD does not stall with more than 1,000 highway layers"
RULE = (
    f"every seed ends at or below {TRAINS:g} × chance, or below {MOVES:g} × chance with a lower mean loss in each "
    f"fifth of the steps than before; contradicted if half end above {STALLS:g} × chance or diverge"
)


@register_reproduction("thousand", title="SGD does not stall beyond 1,000 layers", source="arXiv:1507.06228, §3.1")
class Thousand(Reproduction):
    """1 plain and 1,100 highway layers of 50 units on MNIST-5k, SGD with momentum, gate bias −ln L, against plain.

    The rate is tuned over the same grid for both, and the winner run on fresh seeds. The paper's pilot states neither
    data, width, bias nor curve, so that only "it does not stall" can be tested. Plain layers of the same depth are the
    control: what stalls there is not the optimiser's budget.
    """

    takes = frozenset({"depth", "steps", "seeds"})
    not_attempted = (
        NotAttempted(
            "a 900-layer highway network on CIFAR-100 shows no difficulty by epoch 80",
            "arXiv:1505.00387, §3",
            "the data are not here",
        ),
    )

    def cells(self, request: Request) -> list[Cell]:
        if 1 in request.depth:
            raise BadInput("the depth counts the plain first layer, so it is 2 at least")
        recipe = {
            "optimiser": "sgd",
            "momentum": 0.9,
            "decay": 0.1,
            "steps": request.steps or STEPS,
            "rate": "tuned",
            "rates": list(RATES),
            "threshold": TRAINS,
        }
        grid = Grid(
            task="trainability",
            families=("dense",),
            blocks=("plain", "highway"),
            dataset=DATASET,
            depths=[layers - 1 for layers in request.depth or (LAYERS,)],
            on_cpu=TRAINED,
            seeds=range(request.seeds or SEEDS),
            recipe=recipe,
            statuses=OUTCOMES,
        )
        return list(Plan.of(Profile("thousand", "", (grid,)), Selection(device=request.device)).cells)

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        found, curves = training_runs(rows), _curves(rows)
        found = found[found["status"].isin(OUTCOMES)]  # a run that failed says nothing of its network
        depths = sorted({layers - 1 for layers in request.depth or (LAYERS,)})
        deep = [depth for depth in depths if depth >= DEEP]
        findings = [_highway(found[found["depth"] == depth], depth, curves) for depth in deep]
        if not findings:
            findings = [
                Finding(
                    published=CLAIM,
                    source=LONG,
                    rule=RULE,
                    verdict=Verdict.NOT_TESTABLE,
                    evidence=Evidence.PAPER,
                    measured="no network of such a depth was requested",
                )
            ]
        drawn = [depth for depth in depths if (curves["depth"] == depth).any()]
        pictures = [
            _picture(curves[curves["depth"] == depth], found[found["depth"] == depth], depth) for depth in drawn
        ]
        return Conclusion(findings=findings, tables=[_table(found, curves)], pictures=pictures)


def _chance() -> float:
    return make_dataset(DATASET).chance_loss


def _curves(rows: pd.DataFrame) -> pd.DataFrame:
    """The loss curves of the runs that count, as far as they are finite: ``block``, ``depth``, ``seed``, ``step`` and
    ``loss``."""
    frame = of_task(rows, "trainability")
    frame = frame[frame["trial"].isna() & (frame["axis"] == "step") & (frame["value"] > 0)]
    table = frame[["label", "depth", "seed", "index", "value"]]
    table = table.rename(columns={"label": "block", "index": "step", "value": "loss"})
    return table.sort_values(["block", "depth", "seed", "step"], ignore_index=True)


def _highway(here: pd.DataFrame, depth: int, curves: pd.DataFrame) -> Finding:
    """Reproduced if every seed trains or is under way; contradicted if half of them stall. The plain networks beside it
    are told and not judged: nothing is published of them at such a depth."""
    chance = _chance()
    ways = {
        block: [_way(record, curves, chance) for record in rows_of(here[here["block"] == block])]
        for block in ("highway", "plain")
    }
    own = ways["highway"]
    stalled = own.count("stalls") + own.count("diverges")
    verdict = Verdict.NOT_TESTABLE
    if own and all(way in ("trains", "under way") for way in own):
        verdict = Verdict.REPRODUCED
    elif own and 2 * stalled >= len(own):
        verdict = Verdict.CONTRADICTED
    told = [f"{block}: {counted(ways[block])}, final loss {_loss(here[here['block'] == block])} nat" for block in ways]
    return Finding(
        published=CLAIM,
        source=LONG,
        rule=RULE,
        verdict=verdict,
        evidence=Evidence.PAPER,
        measured=f"{count(depth + 1)} layers, {'; '.join(told)}; chance {three(chance)}",
    )


def _way(run: column.Record, curves: pd.DataFrame, chance: float) -> str:
    """How one run went: trains, under way, stalls, diverges, or slow."""
    if column.missing(run["final_loss"]):
        return "diverges"
    if run["final_loss"] <= TRAINS * chance:
        return "trains"
    if run["final_loss"] > STALLS * chance:
        return "stalls"
    own = curves[
        (curves["block"] == run["block"]) & (curves["depth"] == run["depth"]) & (curves["seed"] == run["seed"])
    ]
    if len(own) < FIFTHS:  # too short a run to see it move
        return "slow"
    fifths = [float(part.mean()) for part in np.array_split(own["loss"].to_numpy(), FIFTHS)]
    falling = all(after < before for before, after in pairwise(fifths))
    return "under way" if falling and run["final_loss"] < MOVES * chance else "slow"


def counted(ways: Sequence[str]) -> str:
    return (
        ", ".join(
            f"{ways.count(way)} of {len(ways)} seeds {_says(way, ways.count(way))}" for way in dict.fromkeys(ways)
        )
        or "no run ended"
    )


def _says(way: str, seeds: int) -> str:
    verb = {"trains": "train", "stalls": "stall", "diverges": "diverge"}.get(way)
    if verb is None:
        return "are " + way if seeds > 1 else "is " + way
    return verb if seeds > 1 else way


def _loss(own: pd.DataFrame) -> str:
    losses = own["final_loss"].dropna()
    return str(log10_interval(losses)) if len(losses) else "–"


def _table(found: pd.DataFrame, curves: pd.DataFrame) -> column.Shown:
    """A row a run."""
    chance = _chance()
    table = found.assign(layers=found["depth"] + 1, way=[_way(record, curves, chance) for record in rows_of(found)])
    columns = [
        column.words("block", "block"),
        column.whole("layers", "layers"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        column.whole("seed", "seed"),
        column.number("rate", "rate", hint="the best of a search over the same rates for both"),
        column.words("way", "outcome"),
        column.number("final_loss", "final loss", "nat", "mean of the last 5 % of the steps"),
        column.whole("steps_to_threshold", "steps to threshold"),
        column.percent("train_accuracy", "train accuracy"),
        column.percent("test_accuracy", "test accuracy"),
        column.number("step_seconds", "step", "s"),
    ]
    note = f"{count(int(_steps(curves)))} steps in batches of {TRAINED.batches['vector']}." if len(curves) else ""
    return column.shown(
        "thousand-runs", "Every run that counts", table.sort_values(["layers", "block", "seed"]), columns, note=note
    )


def _steps(curves: pd.DataFrame) -> float:
    return float(curves["step"].max())


def _picture(curves: pd.DataFrame, found: pd.DataFrame, depth: int) -> Picture:
    """A line a block: the geometric mean of the loss over seeds by step, with its t interval of log₁₀."""
    look = styles(curves["block"])
    told, ends = [], {}
    with settings():
        figure, (axes,) = panels(1, 1, 3.0)
        for block, style in look.items():
            own = curves[curves["block"] == block]
            points = pd.DataFrame(
                [
                    {"step": step, "value": band.value, "low": band.low, "high": band.high}
                    for step, band in ((step, log10_interval(part["loss"])) for step, part in own.groupby("step"))
                ]
            )
            axes.plot(
                points["step"],
                points["value"],
                color=style.colour,
                linestyle=style.dash,
                marker=style.marker,
                markevery=max(1, len(points) // 6),
            )
            if np.isfinite(points["low"]).any():
                axes.fill_between(
                    points["step"], points["low"], points["high"], color=style.colour, alpha=0.2, linewidth=0
                )
            final = found.loc[found["block"] == block, "final_loss"].dropna()
            ends[block] = log10_interval(final).value if len(final) else np.inf
            first, last = (float(points["value"].iloc[place]) for place in (0, -1))
            told.append(f"{block}: {three(first)} to {three(last)} nat")
        for level, text, side in ((1.0, "chance", 1), (TRAINS, "threshold", 0)):
            axes.axhline(level * _chance(), color="#555555", linewidth=0.8, linestyle=":")
            axes.annotate(
                text,
                (side, level * _chance()),
                xycoords=axes.get_yaxis_transform(),
                fontsize=7.5,
                xytext=(4 - 8 * side, 6),
                textcoords="offset points",
                ha="right" if side else "left",
            )
        log_axis(axes, "y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("training step")
        axes.set_ylabel("training loss, nat (log)")
        lost = {block: found.loc[found["block"] == block, "final_loss"].isna() for block in ends}
        order = sorted(ends, key=lambda block: (int(lost[block].sum()), ends[block]))
        ended = ", ".join(_ended(block, ends[block], lost[block]) for block in order)
        title = f"{count(depth + 1)} layers of SGD with momentum: after {count(int(_steps(curves)))} steps {ended}"
        head(figure, title)
        legend(figure, look, lines=True)
    seeds = listed([f"{size}" for size in sorted(set(curves.groupby("block")["seed"].nunique()))])
    caption = (
        f"dense on {DATASET}, equal parameters a layer, rate tuned per block. Geometric means over n = {seeds} "
        "seeds of the mean loss of each stretch of steps, bands 95 % t intervals of log10."
    )
    return Picture(f"thousand-{depth + 1}", title, f"Loss by step. {joined(told)}", caption, figure)


def _ended(block: str, loss: float, lost: pd.Series) -> str:
    """How a block's runs ended; ``lost`` marks those that diverged, which are in no loss."""
    if len(lost) and lost.all():
        return f"{block} diverged"
    some = f" ({lost.sum()} of {len(lost)} seeds diverged)" if lost.any() else ""
    return f"{block} at a loss of {three(loss)}{some}"
