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
from highway_bench.reproduce._cells import trained
from highway_bench.reproduce.base import Conclusion, Finding, Reproduction, Verdict, register_reproduction
from highway_bench.reproduce.request import Request
from highway_bench.success.judging import THRESHOLD

WIDTH, DEPTH, BATCH = 784, 20, 1_000
EPOCHS, SEEDS = 3, 3  # defaults; the lecture has one run of 50 epochs
STEPS_PER_EPOCH = 53  # ⌈52,500 / 1,000⌉: the last batch has 500
MISTAKES = 25

# Epoch → (mean training loss during the epoch, test loss at its end), as printed in the lecture's log
PUBLISHED = {1: (0.8074, 0.2227), 2: (0.1436, 0.1434), 3: (0.0870, 0.1224), 49: (0.0033, 0.1112), 50: (0.0023, 0.1144)}
PUBLISHED_ACCURACY = 0.9827

# The rules. A single published run has no spread, so a factor replaces it: a training loss is reproduced within a
# factor of 2 in the first epochs and of 5 at the end, where it is near zero, and a test loss within 1.5. The band of
# the accuracy is four binomial standard errors at 17,500 images. Losses are geometric means over seeds. The rule that
# one run decides nothing was added after the first run of 50 epochs: early losses differ more than this between seeds.
EARLY, LATE, TESTED, ACCURACY = 2.0, 5.0, 1.5, 0.004

WHERE = "the lecture's log"


@register_reproduction(
    "lecture",
    title="20 highway layers of 784 units on MNIST, Adam",
    source="a lecture's highway network and its printed log",
)
class Lecture(Reproduction):
    """784 inputs → 20 highway layers of 784 units → softmax; H: He, ReLU; T: Glorot, bias 0, so half open at the start.

    Adam at 0.001 with ε = 1e-7 outside of the bias correction, as in the lecture's framework (Keras); this matters for
    small gradients such as these. Batches of 1,000, the incomplete last one included; 52,500 training and 17,500 test
    images, drawn at random. The framework draws weights from a truncated normal (of the same variance). Like the table
    here, it prints the mean training loss during an epoch.
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
            "threshold": THRESHOLD,
            "layout": "stemless",
            "dataset": {"test_share": 0.25},
            "evaluate": "epoch",
            "mistakes": MISTAKES,
        }
        return [
            trained(
                "highway",
                "dense",
                block_options={"gate_bias": 0.0},
                depth=DEPTH,
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
        wrong = rows[(rows["metric"] == "mistaken_for") & rows["value"].notna()]  # a failed run has a null
        if len(wrong):
            pictures.append(_mistakes(wrong[wrong["seed"] == wrong["seed"].min()]))
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
    """One row per epoch: the mean over seeds of each curve."""
    return curves.pivot_table(index="index", columns="metric", values="value", aggfunc="mean")


def _table(curves: pd.DataFrame) -> column.Shown:
    table = _by_epoch(curves).reset_index().rename(columns={"index": "epoch"})
    for name, index in (("published_train", 0), ("published_test", 1)):
        table[name] = [PUBLISHED.get(int(epoch), (math.nan, math.nan))[index] for epoch in table["epoch"]]
    columns = [
        column.whole("epoch", "epoch"),
        column.number("published_train", "published training loss", "nat"),
        column.number("epoch_train_loss", "training loss", "nat", "mean during the epoch"),
        column.number("published_test", "published test loss", "nat"),
        column.number("epoch_test_loss", "test loss", "nat", "at the epoch's end"),
        column.number("epoch_test_accuracy", "test accuracy"),
    ]
    return column.shown("lecture-epochs", "Loss by epoch", table, columns)


def _curves(curves: pd.DataFrame) -> Picture:
    table = _by_epoch(curves)
    last = int(table.index.max())
    dots = {epoch: losses for epoch, losses in PUBLISHED.items() if epoch <= last}
    lines = (
        ("epoch_train_loss", 0, "training", KNOWN["highway"].colour),
        ("epoch_test_loss", 1, "test", KNOWN["residual"].colour),
    )
    with settings():
        figure, (axes,) = panels(1, 1, 3.1)
        for metric, index, _, colour in lines:
            axes.plot(table.index, table[metric], color=colour, marker="o" if last < 10 else None)
            axes.plot(
                list(dots),
                [losses[index] for losses in dots.values()],
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
        handles = [Line2D([], [], color=colour, label=name) for _, _, name, colour in lines]
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
        "Training loss is the mean during the epoch; crosses are the lecture's printed log.",
        figure,
    )


def _mistakes(wrong: pd.DataFrame) -> Picture:
    """Misclassified test digits, each with its true and its predicted class."""
    options: dict[str, Any] = {"test_share": 0.25}
    test = make_dataset("mnist", **options).load(seed=int(wrong["seed"].iloc[0])).test
    shown = wrong.sort_values("index").head(MISTAKES)
    rows = [int(row) for row in shown["index"]]
    predicted = [int(value) for value in shown["value"]]
    true = [int(test.targets[row]) for row in rows]
    with settings():
        figure, all_axes = panels(len(rows), 5, 0.98)
        for axes, row, right, other in zip(all_axes, rows, true, predicted, strict=True):
            _digit(axes, test.inputs[row, 0].numpy(), f"{right}, read as {other}")
        title = "Test digits that the trained network gets wrong"
        head(figure, title)
    alt = joined([f"{right} read as {other}" for right, other in zip(true, predicted, strict=True)], MISTAKES)
    return Picture(
        "lecture-mistakes",
        title,
        f"Misclassified digits. {alt}",
        f"The first {len(rows)} misclassified test images: the true digit and the network's prediction.",
        figure,
    )


def _digit(axes: Axes, pixels: NDArray[np.float32], label: str) -> None:
    axes.imshow(pixels, cmap="gray_r", interpolation="nearest")
    axes.set_title(label, fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
