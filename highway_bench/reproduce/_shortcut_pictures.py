"""The table and the figure of ``shortcuts``: final training losses by shortcut."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from highway_bench.data import make_dataset
from highway_bench.report import columns as column
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, log_axis, mark, panels, settings
from highway_bench.report.figures.drawing import reference_losses
from highway_bench.report.format import listed, quantity, three, times
from highway_bench.reproduce._paired import ArmRuns
from highway_bench.reproduce._shortcut_cases import IDENTITY, NORMED_GATE, TRAINED

SEED, MEAN = "#999999", "#222222"  # greys, because colours denote blocks and some blocks occur several times


def shown(table: pd.DataFrame, steps: int) -> column.Shown:
    columns = [
        column.words("case", "shortcut"),
        column.words("published", "published error", "110 layers, CIFAR-10; fail: above 20 %; 6.04 %: one run"),
        column.spread("loss", "final training loss", "low", "high", "nat", "geometric mean and 95 % over seeds"),
        column.percent("accuracy", "test accuracy"),
        column.whole("params", "parameters"),
        column.number("step_seconds", "step", "s", "median over seeds"),
        column.whole("n", "seeds"),
        column.whole("diverged", "diverged"),
    ]
    identity = 100 * (1 - float(table.set_index("case")["accuracy"][IDENTITY.name]))
    notes = [
        "Means leave out seeds that diverged.",
        f"After {steps} steps the test error of identity is {three(identity)} %." if not math.isnan(identity) else "",
        _cost(table),
    ]
    note = " ".join(filter(None, notes))
    return column.shown("shortcuts", "Shortcuts on MNIST-5k, 34 layers", table, columns, note=note)


def _cost(table: pd.DataFrame) -> str:
    """The cost of the counter-result's network relative to the one with identity shortcuts."""
    costs = table.set_index("case")[["params", "step_seconds"]].to_dict("index")
    gated, identity = costs[NORMED_GATE.name], costs[IDENTITY.name]
    size = float(gated["params"]) / float(identity["params"])
    seconds = [float(case["step_seconds"]) for case in (gated, identity)]
    if math.isnan(size) or any(map(math.isnan, seconds)):
        return ""
    return (
        f"The counter-result's network has {times(size)} the parameters of the one with identity shortcuts; a step "
        f"takes {quantity(seconds[0], 's')} against {quantity(seconds[1], 's')}, in runs that are not paired (at "
        "110 layers 1.53× the parameters and 2.2× the time are published)."
    )


def picture(table: pd.DataFrame, arms: Mapping[str, ArmRuns], steps: int) -> Picture:
    """One row per case: every seed, and the geometric mean with its interval."""
    order = table.sort_values("loss", na_position="last", ignore_index=True)
    failing = [case for case in order["case"] if 2 * sum(map(TRAINED.by, arms[case].values())) < len(arms[case])]
    title = f"Test error above 20 % at more than half of the seeds: {listed(failing) if failing else 'none'}"
    known = order.dropna(subset="loss")
    title += "" if known.empty else f". Lowest loss: {known['case'].iloc[0]}"
    with settings():
        figure, (axes,) = panels(1, 1, 0.28 * len(order) + 0.5)
        for y, record in enumerate(order.to_dict("records")):
            losses = [run["final_loss"] for run in arms[record["case"]].values()]
            finite = [loss for loss in losses if math.isfinite(loss)]
            axes.scatter(finite, [y] * len(finite), s=12, color=SEED, zorder=2)
            if len(finite) < len(losses):
                axes.text(
                    0.02,
                    y,
                    f"{record['diverged']} diverged",
                    va="center",
                    fontsize=7.5,
                    transform=axes.get_yaxis_transform(),
                )
            if finite:
                interval = [] if math.isnan(record["low"]) else [record["low"], record["high"]]
                axes.plot(interval, [y] * len(interval), color=MEAN, linewidth=1.6, zorder=3)
                axes.scatter([record["loss"]], [y], s=34, color=MEAN, zorder=4)
        axes.set_yticks(
            range(len(order)),
            [f"{record['case']}, {record['published']}" for record in order.to_dict("records")],
        )
        axes.set_ylim(len(order) - 0.5, -0.5)
        axes.annotate(
            "shortcut, published error",
            (0, 1),
            xycoords="axes fraction",
            xytext=(-6, 3),
            textcoords="offset points",
            ha="right",
            fontsize=7.5,
            color="#555555",
        )
        reference_losses(axes, make_dataset("mnist-5k").chance_loss, along="x")
        log_axis(axes, "x")
        axes.set_xlabel("training loss, nat (log)")
        head(figure, title)
        figure.legend(
            handles=[mark("o", "mean and 95 % interval", MEAN), mark(".", "one seed", SEED)],
            ncols=2,
            loc="outside lower left",
        )
    alt = joined([f"{record['case']} {three(record['loss'])}" for record in order.to_dict("records")])
    return Picture(
        "shortcuts",
        title,
        f"Final training loss by shortcut. {alt}",
        f"34 layers on 4,000 digits, {steps} steps. Published: errors of 110 layers on CIFAR-10; fail: above 20 %.",
        figure,
    )
