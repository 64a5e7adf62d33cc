"""The lecture's network: 20 highway layers of 784 units on MNIST, gate bias 0, Adam."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from highway_bench.cell import Cell
from highway_bench.data import make_dataset
from highway_bench.measure.statistics import log10_interval, t_interval
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, log_axis, panels, settings
from highway_bench.report.format import three
from highway_bench.report.style import KNOWN
from highway_bench.reproduce.base import Conclusion, Finding, Reproduction, Verdict, register_reproduction
from highway_bench.reproduce.request import Request

WIDTH, DEPTH, BATCH = 784, 20, 1_000
EPOCHS, SEEDS = 3, 3  # by default; the lecture trained for 50, once
STEPS_PER_EPOCH = 53  # ⌈52,500 / 1,000⌉: the last batch has 500
MISTAKES = 25

# Epoch → (training loss while the epoch ran, test loss at its end), as the lecture's log prints them
PUBLISHED = {1: (0.8074, 0.2227), 2: (0.1436, 0.1434), 3: (0.0870, 0.1224), 49: (0.0033, 0.1112), 50: (0.0023, 0.1144)}
PUBLISHED_ACCURACY = 0.9827

# The rules. One published run has no spread, so that a factor stands in for one: a training loss counts as reproduced
# within a factor of 2 in the first epochs and of 5 at the end, where it nears zero, and a test loss within 1.5. The
# accuracy's band is four binomial standard errors at 17,500 images. Losses are geometric means over seeds. That one run
# decides nothing was agreed after the first of 50 epochs: its early losses differ from seed to seed by more than that.
EARLY, LATE, TESTED, ACCURACY = 2.0, 5.0, 1.5, 0.004

WHERE = "the lecture's log"


@register_reproduction(
    "lecture",
    title="20 highway layers of 784 units on MNIST, Adam",
    source="a lecture's highway network and its printed log",
)
class Lecture(Reproduction):
    """784 inputs → 20 highway layers of 784 units → softmax; H: He, ReLU; T: Glorot, bias 0, so open by half.

    Adam at 0.001 with ε = 1e-7 outside of the bias correction, as the lecture's framework (Keras) has it, which
    matters where gradients start as small as these; batches of 1,000 with the last one kept; 52,500 images for
    training and 17,500 for testing, drawn at random. The framework draws its normal weights truncated (of the same
    variance) and prints an epoch's training loss as the mean while it ran; so does the table here.
    """

    takes = frozenset({"epochs", "seeds"})

    def cells(self, request: Request) -> list[Cell]:
        recipe = {
            "optimiser": "adam",
            "rate": 0.001,
            "epsilon": 1e-7,
            "epsilon_place": "outside",
            "decay": 1.0,
            "last_batch": "keep",
            "steps": (request.epochs or EPOCHS) * STEPS_PER_EPOCH,
            "threshold": 0.1,
            "layout": "stemless",
            "dataset": {"test_share": 0.25},
            "evaluate": "epoch",
            "mistakes": MISTAKES,
        }
        return [
            Cell(
                task="trainability",
                block="highway",
                block_options={"gate_bias": 0.0},
                family="dense",
                depth=DEPTH,
                width=WIDTH,
                nominal_width=WIDTH,
                match="width",
                batch_size=BATCH,
                dataset="mnist",
                recipe=recipe,
                device=request.device,
                seed=seed,
            )
            for seed in range(request.seeds or SEEDS)
        ]

    def outcome(self, rows: pd.DataFrame, request: Request) -> Conclusion:
        curves = rows[rows["axis"] == "epoch"]
        epochs = request.epochs or EPOCHS
        findings = [
            finding
            for epoch in PUBLISHED
            for finding in (
                _loss_finding(
                    curves, "epoch_train_loss", epoch, epochs, PUBLISHED[epoch][0], EARLY if epoch <= EPOCHS else LATE
                ),
                _loss_finding(curves, "epoch_test_loss", epoch, epochs, PUBLISHED[epoch][1], TESTED),
            )
        ]
        findings.append(_accuracy_finding(rows, epochs))
        pictures = [_curves(curves)] if len(curves) else []
        wrong = rows[(rows["metric"] == "mistaken_for") & (rows["seed"] == rows["seed"].min())]
        if len(wrong):
            pictures.append(_mistakes(wrong))
        return Conclusion(findings=findings, tables=[_table(curves)] if len(curves) else [], pictures=pictures)


def _loss_finding(
    curves: pd.DataFrame, metric: str, epoch: int, epochs: int, published: float, factor: float
) -> Finding:
    what = "training loss" if metric == "epoch_train_loss" else "test loss"
    claim = f"{what} of epoch {epoch}: {published:.4f}"
    rule = f"within a factor of {factor:g}"
    if epoch > epochs:
        return Finding(
            published=claim, source=WHERE, measured=f"not run: {epochs} epochs", rule=rule, verdict=Verdict.NOT_TESTABLE
        )
    values = curves.loc[(curves["metric"] == metric) & (curves["index"] == epoch), "value"]
    if not len(values) or values.isna().any() or len(values) < curves["seed"].nunique():
        return Finding(
            published=claim,
            source=WHERE,
            measured="a run diverged",
            rule=rule,
            verdict=Verdict.CONTRADICTED if len(curves) else Verdict.NOT_TESTABLE,
        )
    measured = log10_interval(values)
    near = published / factor <= measured.value <= published * factor
    text = f"{measured.value:.4f}{_spread(measured.low, measured.high)}"
    return Finding(
        published=claim,
        source=WHERE,
        measured=text,
        rule=rule,
        verdict=Verdict.REPRODUCED if near else Verdict.CONTRADICTED,
    )


def _accuracy_finding(rows: pd.DataFrame, epochs: int) -> Finding:
    claim, rule = f"test accuracy after 50 epochs: {PUBLISHED_ACCURACY}", f"within {ACCURACY}"
    by_epoch = rows[(rows["metric"] == "epoch_test_accuracy") & (rows["index"] == min(epochs, max(PUBLISHED)))]
    values = by_epoch["value"].dropna()
    if not len(values):
        return Finding(published=claim, source=WHERE, measured="no accuracy", rule=rule, verdict=Verdict.NOT_TESTABLE)
    measured = t_interval(values)
    text = f"{measured.value:.4f}{_spread(measured.low, measured.high)} after {min(epochs, max(PUBLISHED))} epochs"
    if epochs < max(PUBLISHED):
        return Finding(published=claim, source=WHERE, measured=text, rule=rule, verdict=Verdict.NOT_TESTABLE)
    near = abs(measured.value - PUBLISHED_ACCURACY) <= ACCURACY
    return Finding(
        published=claim,
        source=WHERE,
        measured=text,
        rule=rule,
        verdict=Verdict.REPRODUCED if near else Verdict.CONTRADICTED,
    )


def _spread(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" [{low:.4f}, {high:.4f}]"


def _by_epoch(curves: pd.DataFrame) -> pd.DataFrame:
    """A row an epoch, the mean over seeds of each curve."""
    return curves.pivot_table(index="index", columns="metric", values="value", aggfunc="mean")


def _table(curves: pd.DataFrame) -> column.Shown:
    table = _by_epoch(curves).reset_index().rename(columns={"index": "epoch"})
    for name, place in (("published_train", 0), ("published_test", 1)):
        table[name] = [PUBLISHED.get(int(epoch), (math.nan, math.nan))[place] for epoch in table["epoch"]]
    columns = [
        column.whole("epoch", "epoch"),
        column.number("published_train", "published training loss", "nat"),
        column.number("epoch_train_loss", "training loss", "nat", "mean while the epoch ran"),
        column.number("published_test", "published test loss", "nat"),
        column.number("epoch_test_loss", "test loss", "nat", "at the epoch's end"),
        column.number("epoch_test_accuracy", "test accuracy"),
    ]
    return column.shown("lecture-epochs", "Loss by epoch", table, columns)


def _curves(curves: pd.DataFrame) -> Picture:
    table = _by_epoch(curves)
    last = int(table.index.max())
    dots = {epoch: losses for epoch, losses in PUBLISHED.items() if epoch <= last}
    looks = (
        ("epoch_train_loss", 0, "training", KNOWN["highway"].colour),
        ("epoch_test_loss", 1, "test", KNOWN["residual"].colour),
    )
    with settings():
        figure, (axes,) = panels(1, 1, 3.1)
        for metric, place, _, colour in looks:
            axes.plot(table.index, table[metric], color=colour, marker="o" if last < 10 else None)
            axes.plot(
                list(dots),
                [losses[place] for losses in dots.values()],
                color=colour,
                marker="x",
                markersize=8,
                markeredgewidth=1.6,
                linestyle="none",
            )
        log_axis(axes, "y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss, nat (log)")
        final = table.iloc[-1]
        title = (
            f"20 × 784 highway, epoch {last}: training loss {three(final['epoch_train_loss'])}, "
            f"test loss {three(final['epoch_test_loss'])}"
        )
        head(figure, title)
        handles = [Line2D([], [], color=colour, label=name) for _, _, name, colour in looks]
        handles.append(Line2D([], [], color="#555555", marker="x", linestyle="none", label="published"))
        figure.legend(handles=handles, loc="outside lower left", ncols=3)
    alt = joined(
        [
            f"epoch {epoch:.0f}: training {three(row['epoch_train_loss'])}, test {three(row['epoch_test_loss'])}"
            for epoch, row in table.iterrows()
        ],
        60,
    )
    return Picture(
        "lecture-curves",
        title,
        f"Loss by epoch. {alt}",
        "Training loss is the mean while the epoch ran; crosses are the lecture's printed log.",
        figure,
    )


def _mistakes(wrong: pd.DataFrame) -> Picture:
    """Test digits that the network got wrong, with the true class and the one it gave."""
    options: dict[str, Any] = {"test_share": 0.25}
    test = make_dataset("mnist", **options).load(seed=int(wrong["seed"].iloc[0])).test
    shown = wrong.sort_values("index").head(MISTAKES)
    places = [int(place) for place in shown["index"]]
    given = [int(value) for value in shown["value"]]
    true = [int(test.targets[place]) for place in places]
    with settings():
        figure, all_axes = panels(len(places), 5, 0.98)
        for axes, place, right, answer in zip(all_axes, places, true, given, strict=True):
            _digit(axes, test.inputs[place, 0].numpy(), f"{right}, read as {answer}")
        title = "Test digits that the trained network gets wrong"
        head(figure, title)
    alt = joined([f"{right} read as {answer}" for right, answer in zip(true, given, strict=True)], MISTAKES)
    return Picture(
        "lecture-mistakes",
        title,
        f"Misclassified digits. {alt}",
        f"The first {len(places)} of the test images that were misclassified: the true digit and the one "
        "that the network gave.",
        figure,
    )


def _digit(axes: Axes, pixels: NDArray[np.float32], label: str) -> None:
    axes.imshow(pixels, cmap="gray_r", interpolation="nearest")
    axes.set_title(label, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
