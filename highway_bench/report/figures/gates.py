"""Inside a trained network, layer by layer: gate biases and activity, the stream's change and the lesion curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from highway_bench.report.figures.base import NothingToShow, Picture, head, joined, legend, panels, settings
from highway_bench.report.format import three
from highway_bench.report.rows import CONTEST, groups, prepared
from highway_bench.report.style import Look, looks
from highway_bench.report.tables.gates import layers, over_seeds
from highway_bench.report.tables.labels import contest_text

GATES = ("gate_bias_start", "gate_bias_change", "gate_activity")
EFFECTS = ("stream_change", "lesion_loss_change", "lesion_error_change")
BAND = 0.2  # opacity


def gates_by_layer(rows: pd.DataFrame, *, first: int = 1) -> list[Picture]:
    """A picture a contest: gate bias at the start and after training, and mean gate activity, a colour a network.

    ``first`` is the number of the first joined layer, 2 where a plain one before it is counted too."""
    table = _trained(rows, "gate_bias_end", first)
    if table.empty:
        raise NothingToShow("gates by layer need the gates task and a block with gates that trained")
    return [
        _gates(f"gates-{number}", contest, part)
        for number, (contest, part) in enumerate(groups(table, CONTEST), start=1)
    ]


def lesion_by_layer(rows: pd.DataFrame, *, first: int = 1) -> list[Picture]:
    """A picture a contest: how much each layer changes the stream, and what cutting it out does to loss and error.

    ``first`` is as in ``gates_by_layer``."""
    table = _trained(rows, "lesion_loss", first)
    if table.empty:
        raise NothingToShow("the lesion curve needs the gates task and a block that carries its input and trained")
    return [
        _lesion(f"lesion-{number}", contest, part)
        for number, (contest, part) in enumerate(groups(table, CONTEST), start=1)
    ]


def _trained(rows: pd.DataFrame, metric: str, first: int) -> pd.DataFrame:
    """The layers that have ``metric``, of the networks that trained: the others' gates tell nothing of depth. Both the
    layers and the depth are counted as ``first`` says."""
    table = layers(prepared(rows))
    table = table.assign(layer=table["layer"] + first - 1, depth=table["depth"] + first - 1)
    return table[(table["success"] == 1) & table[metric].notna()]


def _gates(name: str, contest: dict[str, object], part: pd.DataFrame) -> Picture:
    moved = part.assign(gate_bias_change=part["gate_bias_end"] - part["gate_bias_start"])
    mean = over_seeds(moved, ["label", "layer"], GATES)
    look = looks(mean["label"])
    told = []
    with settings():
        figure, (bias, activity) = panels(2, 1, 1.9, sharex=True)
        for label, style in look.items():
            own = mean[mean["label"] == label]
            line(bias, own, "gate_bias_change", style)
            line(activity, own, "gate_activity", style)
            start, moves, open_by = (three(own[metric].mean()) for metric in GATES)
            told.append(f"{label}: gate biases start at {start} and move by {moves}, T is {open_by} on average")
        bias.axhline(0, color="#555555", linewidth=0.8)
        bias.set_ylabel("gate bias,\nend − start")
        activity.set_ylabel("T, mean over items")
        activity.set_ylim(bottom=0)
        activity.set_xlabel("layer joined by the block")
        activity.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"Depth {_depths(part)}, {told[0]}"
        head(figure, title)
        legend(figure, look, lines=True)
    return Picture(name, title, f"Gate bias and activity by layer. {joined(told)}", _caption(contest, mean), figure)


def _lesion(name: str, contest: dict[str, object], part: pd.DataFrame) -> Picture:
    mean = over_seeds(part.assign(lesion_error_change=100 * part["lesion_error_change"]), ["label", "layer"], EFFECTS)
    look = looks(mean["label"])
    told = []
    with settings():
        figure, (change, loss, error) = panels(3, 1, 1.55, sharex=True)
        for label, style in look.items():
            own = mean[mean["label"] == label]
            for axes, metric in zip((change, loss, error), EFFECTS, strict=True):
                line(axes, own, metric, style)
            most = own.iloc[int(own["lesion_loss_change"].argmax())]
            told.append(
                f"{label}: cutting out layer {most['layer']:.0f} costs most, "
                f"{three(most['lesion_loss_change'])} nat; the median layer "
                f"{three(own['lesion_loss_change'].median())}"
            )
        change.set_ylabel("‖Δx‖ / ‖x‖")
        change.set_ylim(bottom=0)
        # Most layers change next to nothing and a few a great deal: linear about zero, logarithmic beyond.
        for axes, linear in ((loss, 1e-3), (error, 0.1)):
            axes.set_yscale("symlog", linthresh=linear)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))
            axes.axhline(0, color="#555555", linewidth=0.8)
        loss.set_ylabel("Δ loss, nat")
        error.set_ylabel("Δ error, points")
        error.set_xlabel("layer cut out")
        error.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"Depth {_depths(part)}, {told[0]}"
        head(figure, title)
        legend(figure, look, lines=True)
    caption = f"{_caption(contest, mean)} A layer that is cut out copies its input; over the whole training set."
    return Picture(name, title, f"Lesion curve. {joined(told)}", caption, figure)


def line(axes: Axes, own: pd.DataFrame, metric: str, style: Look) -> None:
    """One network's mean by layer, with its band where seeds allow one."""
    axes.plot(
        own["layer"],
        own[metric],
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.2,
        marker=style.marker,
        markersize=3.5,
        markevery=max(1, len(own) // 8),
    )
    if np.isfinite(own[f"{metric}_low"]).any():
        axes.fill_between(
            own["layer"], own[f"{metric}_low"], own[f"{metric}_high"], color=style.colour, alpha=BAND, linewidth=0
        )


def _depths(part: pd.DataFrame) -> str:
    return ", ".join(f"{depth:g}" for depth in sorted(part["depth"].unique()))


def _caption(contest: dict[str, object], mean: pd.DataFrame) -> str:
    counts: Sequence[int] = sorted(set(mean["n"]))
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{contest_text(contest)}. Means over the n = {n} seeds that train, bands 95 % t intervals."
