"""How negative should a gate start? The guideline for convolutional highway networks of 10, 20 and 30 layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput
from highway_bench.measure.statistics import log10_interval, t_interval
from highway_bench.report import present
from highway_bench.report.figures import Picture
from highway_bench.report.figures._base import head, joined, log_axis, mark, panels, settings
from highway_bench.report.number import between, listed, three
from highway_bench.report.style import KNOWN
from highway_bench.reproduce._base import Asked, Finding, Outcome, Reproduction, Verdict, register_reproduction
from highway_bench.reproduce._paired import Arm, arm, log_ratio, measured

GUIDELINE: Mapping[int, float] = {10: -1.0, 20: -2.0, 30: -3.0}  # layers → bias
BIASES = (0.0, -1.0, -2.0, -3.0, -4.0)
ENDS = 2  # layers that are not joined: the first convolution and the affine map
WIDTH, BATCH = 8, 32
STEPS, SEEDS = 150, 4
RATES = (0.3, 0.1, 0.03)
LONG = "arXiv:1507.06228"

PUBLISHED: Mapping[int, float] = {16: 0.9943, 32: 0.9955}  # width → best test accuracy on MNIST
SIZED_STEPS, SIZED_BATCH = 300, 100

# The rules, agreed before any run. A bias is among the best at a depth unless the t interval of its loss over the
# lowest one's (as log10, paired by seed, widened for the comparisons) lies above 1. Where no bias is told from the
# lowest, the experiment tells nothing. A published accuracy counts as reached within a tenth of a point.
ACCURACY = 0.001
RULE = "not above the lowest loss by the interval of their ratio, where some other bias is"


@register_reproduction("gate-bias", title="Gate biases of convolutional highway networks by depth",
                       source=f"{LONG}, §2.3 and table 1")
class GateBias(Reproduction):
    """Highway networks of 3×3 convolutions on MNIST-5k: gates that start at 0 to −4, each at 10, 20 and 30 layers and
    at a rate tuned for it; and the two networks of the paper's MNIST table.

    The paper's layout at width 8 and without its dropout, SGD with momentum 0.9. The two networks are trained with Adam
    on all of MNIST, or on MNIST-5k where it is not here; 300 steps unless ``epochs`` are asked for.
    """

    takes = frozenset({"depths", "seeds", "steps", "epochs"})

    def cells(self, asked: Asked) -> list[Cell]:
        crossed = [cell for layers in _layers(asked) for bias in BIASES for cell in crossed_cells(layers, bias, asked)]
        return crossed + [sized_cell(width, asked) for width in PUBLISHED]

    def outcome(self, rows: pd.DataFrame, asked: Asked) -> Outcome:
        values = measured(rows, self.cells(asked))
        arms = {layers: {bias: arm(values, crossed_cells(layers, bias, asked)) for bias in BIASES}
                for layers in _layers(asked)}
        records = [_record(layers, bias, losses, [values[cell] for cell in crossed_cells(layers, bias, asked)])
                   for layers, by_bias in arms.items() for bias, losses in by_bias.items()]
        findings = [_guideline(layers, arms[layers]) for layers in arms if layers in GUIDELINE]
        findings += [_accuracy(width, sized_cell(width, asked), values) for width in PUBLISHED]
        table = pd.DataFrame(records)
        pictures = [_picture(table)] if table["loss"].notna().any() else []
        return Outcome(findings=findings, tables=[_shown(table)], pictures=pictures)


def _layers(asked: Asked) -> Sequence[int]:
    layers = asked.depths or tuple(GUIDELINE)
    if min(layers) < ENDS + 3:
        raise BadInput(f"a depth counts the first and the last layer and three stretches between: {ENDS + 3} at least")
    return layers


def crossed_cells(layers: int, bias: float, asked: Asked) -> list[Cell]:
    """The runs of one depth and bias."""
    recipe = {"optimiser": "sgd", "momentum": 0.9, "decay": 0.1, "steps": asked.steps or STEPS, "rate": "tuned",
              "rates": list(RATES), "threshold": 0.1, "layout": "conv-highway"}
    return [_cell(layers - ENDS, WIDTH, bias, recipe, BATCH, "mnist-5k", asked, seed)
            for seed in range(asked.seeds or SEEDS)]


def sized_cell(width: int, asked: Asked) -> Cell:
    """One network of the MNIST table: 8 highway layers between a convolution and the classes, gate bias −1."""
    dataset = "mnist" if make_dataset("mnist").missing() is None else "mnist-5k"
    items = 60_000 if dataset == "mnist" else 4_000
    steps = asked.epochs * (items // SIZED_BATCH) if asked.epochs else SIZED_STEPS
    recipe = {"optimiser": "adam", "rate": 0.003, "decay": 0.03, "steps": steps, "threshold": 0.1,
              "layout": "conv-highway"}
    return _cell(8, width, GUIDELINE[10], recipe, SIZED_BATCH, dataset, asked, 0)


def _cell(depth: int, width: int, bias: float, recipe: Mapping[str, Any], batch_size: int, dataset: str, asked: Asked,
          seed: int) -> Cell:
    return Cell(task="trainability", block="highway", block_options={"gate_bias": bias}, family="conv", depth=depth,
                width=width, nominal_width=width, match="width", batch_size=batch_size, dataset=dataset, recipe=recipe,
                device=asked.device, seed=seed)


def _guideline(layers: int, arms: Mapping[float, Arm]) -> Finding:
    advised = GUIDELINE[layers]
    means = {bias: _mean(losses) for bias, losses in arms.items()}
    best = min(means, key=lambda bias: means[bias])
    confidence = 1 - 0.05 / (len(BIASES) - 1)
    # A bias that diverged somewhere, and one that was not measured, has no interval: told apart only by the former
    ratios = {bias: log_ratio(losses, arms[best], confidence) for bias, losses in arms.items() if bias != best}
    apart = {bias for bias, ratio in ratios.items()
             if (ratio is not None and ratio.low > 0) or math.inf in arms[bias].values()}
    if not math.isfinite(means[best]) or not arms[advised]:
        told, verdict = "not measured, or no bias without a run that diverged", Verdict.NOT_TESTABLE
    else:
        told = f"lowest at {_bias(best)}, {three(means[best])} nat"
        if advised != best and (ratio := ratios[advised]) is not None:
            told += (f"; at {_bias(advised)} {three(10**ratio.value)}× {between(10**ratio.low, 10**ratio.high)} "
                     f"(n = {ratio.n})")
        told += f"; worse: {listed([_bias(bias) for bias in BIASES if bias in apart])}"
        verdict = (Verdict.CONTRADICTED if advised in apart else
                   Verdict.REPRODUCED if apart else Verdict.NOT_TESTABLE)
    return Finding(published=f"{layers} layers: bias {_bias(advised)}", source=f"{LONG}, §2.3", measured=told,
                   rule=RULE, verdict=verdict)


def _accuracy(width: int, cell: Cell, values: Mapping[Cell, Mapping[str, float]]) -> Finding:
    accuracy = values[cell].get("test_accuracy", math.nan)
    whole = cell.dataset == "mnist"
    reached = whole and accuracy >= PUBLISHED[width] - ACCURACY
    steps = f"after {cell.recipe['steps']} steps of {cell.batch_size} on {cell.dataset}"
    return Finding(published=f"width {width}, best of 5 runs: {100 * PUBLISHED[width]:.2f} % of MNIST's test set",
                   source=f"{LONG}, table 1", rule=f"within {100 * ACCURACY:g} points; not testable below",
                   measured=("no accuracy " if math.isnan(accuracy) else f"{100 * accuracy:.2f} % ") + steps,
                   verdict=Verdict.REPRODUCED if reached else Verdict.NOT_TESTABLE)


def _mean(losses: Arm) -> float:
    """Geometric mean; infinite where a seed diverged or nothing was measured."""
    return math.inf if not losses or math.inf in losses.values() else log10_interval(losses.values()).value


def _bias(bias: float) -> str:
    return f"{bias:g}".replace("-", "−")


def _record(layers: int, bias: float, losses: Arm, values: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    loss = log10_interval(finite) if finite else None
    rates = [found["rate"] for found in values if "rate" in found]
    accuracies = [found["test_accuracy"] for found in values if found.get("test_accuracy") == found.get("test_accuracy")
                  and "test_accuracy" in found]
    return {"layers": layers, "bias": bias, "advised": "advised" if GUIDELINE.get(layers) == bias else "",
            "n": len(losses), "diverged": len(losses) - len(finite), "rate": np.median(rates) if rates else math.nan,
            "loss": loss.value if loss else math.nan, "low": loss.low if loss else math.nan,
            "high": loss.high if loss else math.nan,
            "accuracy": t_interval(accuracies).value if accuracies else math.nan}


def _shown(table: pd.DataFrame) -> present.Shown:
    columns = [
        present.whole("layers", "layers", "the first and the last included"),
        present.number("bias", "gate bias"),
        present.words("advised", "guideline"),
        present.spread("loss", "final training loss", "low", "high", "nat", "geometric mean and 95 % over seeds"),
        present.percent("accuracy", "test accuracy"),
        present.number("rate", "rate", hint="tuned for the depth and the bias"),
        present.whole("n", "seeds"),
        present.whole("diverged", "diverged"),
    ]
    return present.shown("gate-bias", "Gate bias by depth", table, columns, note="Seeds that diverged are in no mean.")


def _picture(table: pd.DataFrame) -> Picture:
    """Loss by bias, a line a depth; a ring marks the guideline's bias."""
    looks = dict(zip(sorted(table["layers"].unique()), ("highway", "residual", "pre-norm", "post-norm", "plain",
                                                        "highway-free"), strict=False))
    ranked = table.dropna(subset="loss").sort_values("loss")
    best = ranked.groupby("layers")["bias"].first()
    title = "Lowest loss: " + joined([f"{layers} layers at bias {_bias(bias)}" for layers, bias in best.items()])[:-1]
    with settings():
        figure, (axes,) = panels(1, 1, 3.0)
        for place, (layers, name) in enumerate(looks.items()):
            look, own = KNOWN[name], table[(table["layers"] == layers) & table["loss"].notna()].sort_values("bias")
            shifted = own["bias"] + 0.05 * (place - (len(looks) - 1) / 2)
            spread = np.nan_to_num(np.array([own["loss"] - own["low"], own["high"] - own["loss"]]))
            axes.errorbar(shifted, own["loss"], yerr=spread, color=look.colour, marker=look.marker, capsize=2,
                          linewidth=1.2)
            advised = own["advised"] != ""
            axes.scatter(shifted[advised], own["loss"][advised], s=130, facecolors="none", edgecolors=look.colour,
                         linewidths=1.2, zorder=4)
        log_axis(axes, "y")
        axes.set_xticks(list(BIASES), [_bias(bias) for bias in BIASES])
        axes.set_xlabel("gate bias at the start")
        axes.set_ylabel("final training loss, nat (log)")
        head(figure, title)
        handles = [mark(KNOWN[name].marker, f"{layers} layers", KNOWN[name].colour) for layers, name in looks.items()]
        figure.legend(handles=[*handles, mark("o", "guideline", filled=False)], ncols=4, loc="outside lower left")
    alt = joined([f"{record['layers']:.0f} layers, bias {_bias(record['bias'])}: {three(record['loss'])}"
                  for record in table.to_dict("records")], 20)
    return Picture("gate-bias", title, f"Final training loss by gate bias. {alt}",
                   "Convolutional highway networks on 4,000 digits, rate tuned for each; bars are 95 % over seeds, "
                   "rings the guideline's bias.", figure)
