"""Trained networks by layer: gate biases and activity, the change of the stream, and the lesion curve."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    panels,
    register_figure,
    settings,
)
from highway_bench.report.figures.drawing import DOTS_BELOW, line_with_band
from highway_bench.report.format import signed, three
from highway_bench.report.labels import contest_text
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups
from highway_bench.report.style import NEUTRAL, Style, styles
from highway_bench.report.tables.gates import over_seeds

LEAST_REACH = 0.1
"""The axis of changes of a bias covers at least this share of the starting bias."""
LINEAR_LOSS, LINEAR_ERROR = 1e-3, 0.1
"""Changes below these are drawn on a linear part of the axis: nat, points."""
HARDLY = 0.01
"""A change of a bias below this share of it is not stated in digits."""
GATES = ("gate_bias_start", "gate_bias_change", "gate_activity")
EFFECTS = ("stream_change", "lesion_loss_change", "lesion_error_change")


@register_figure("gates-by-layer", title="gates by layer", order=110, section="gates")
def gates_by_layer(results: Results, *, first: int = 1, titled: str = "") -> list[Picture]:
    """One picture per contest: the change of the gate bias in training, and mean gate activity, one line per network.

    ``first`` is the number of the first layer: 2 if a plain layer before it is counted too. The title is about the
    network ``titled``, if it trained, else about the first one."""
    table = _trained(results, "gate_bias_end", first)
    if table.empty:
        raise NothingToShow("gates by layer need the gates task and a block with gates that trained")
    return [
        _gates(f"gates-{number}", contest, part, results, titled)
        for number, (contest, part) in enumerate(groups(table, CONTEST), start=1)
    ]


@register_figure("lesion-by-layer", title="lesion by layer", order=120, section="gates")
def lesion_by_layer(results: Results, *, first: int = 1, titled: str = "") -> list[Picture]:
    """One picture per contest: the change of the stream by each layer, and the rise of loss and error without it.

    ``first`` and ``titled`` are as in ``gates_by_layer``."""
    table = _trained(results, "lesion_loss", first)
    if table.empty:
        raise NothingToShow("the lesion curve needs the gates task and a block that carries its input and trained")
    return [
        _lesion(f"lesion-{number}", contest, part, results, titled)
        for number, (contest, part) in enumerate(groups(table, CONTEST), start=1)
    ]


def _trained(results: Results, metric: str, first: int) -> pd.DataFrame:
    """The layers with ``metric`` of the networks that train; others give no evidence on gates. Layers and depth are
    counted from ``first``."""
    table = results.trained_layers()
    table = table.assign(layer=table["layer"] + first - 1, depth=table["depth"] + first - 1)
    return table[(table["success"] == 1) & table[metric].notna()]


def _gates(name: str, contest: dict[str, object], part: pd.DataFrame, results: Results, titled: str) -> Picture:
    moved = part.assign(gate_bias_change=part["gate_bias_end"] - part["gate_bias_start"])
    mean = over_seeds(moved, ["label", "layer"], GATES)
    style = styles(mean["label"], results.about)
    alt = []
    with settings():
        figure, (bias, activity) = panels(2, 1, 1.9, sharex=True)
        for label, own_style in style.items():
            own = mean[mean["label"] == label]
            for axes, metric in ((bias, "gate_bias_change"), (activity, "gate_activity")):
                _seeds(axes, moved[moved["label"] == label], metric, own_style)
                _line(axes, own, metric, own_style)
            start, moves, open_by = (float(own[metric].mean()) for metric in GATES)
            change = f"change by {three(moves)}" if abs(moves) > HARDLY * abs(start) else "hardly change"
            alt.append(f"{label}: gate biases start at {three(start)} and {change}, mean T is {three(open_by)}")
        bias.axhline(0, color=NEUTRAL, linewidth=0.8)
        reach = LEAST_REACH * float(mean["gate_bias_start"].abs().max())  # a drift of less must not fill the panel
        low, high = bias.get_ylim()
        bias.set_ylim(min(low, -reach), max(high, reach))
        bias.set_ylabel("gate bias,\nend − start")
        activity.set_ylabel("T, mean over items")
        activity.set_ylim(bottom=0)
        activity.set_xlabel("layer")
        activity.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"{_depths(part)} layers, {_titled(alt, titled)}"
        head(figure, title)
        legend(figure, style, lines=True)
    return Picture(
        name,
        title,
        f"Gate bias and activity by layer. {joined(alt)}",
        _caption(contest, mean),
        figure,
    )


def _lesion(name: str, contest: dict[str, object], part: pd.DataFrame, results: Results, titled: str) -> Picture:
    part = part.assign(lesion_error_change=100 * part["lesion_error_change"])
    mean = over_seeds(part, ["label", "layer"], EFFECTS)
    style = styles(mean["label"], results.about)
    alt = []
    with settings():
        figure, (change, loss, error) = panels(3, 1, 1.55, sharex=True)
        for label, own_style in style.items():
            own = mean[mean["label"] == label]
            for axes, metric in zip((change, loss, error), EFFECTS, strict=True):
                _line(axes, own, metric, own_style)
            _seeds(error, part[part["label"] == label], EFFECTS[-1], own_style)  # in all panels they take 135 kB
            most = own.iloc[int(own["lesion_loss_change"].argmax())]
            middle = float(own["lesion_loss_change"].median())
            by = f"by {three(middle)}" if abs(middle) > LINEAR_LOSS else f"by less than {LINEAR_LOSS:g}"
            alt.append(
                f"{label}: the loss rises most without layer {most['layer']:.0f}, by "
                f"{three(most['lesion_loss_change'])} nat; without the median layer {by}"
            )
        change.set_ylabel("‖Δx‖ / ‖x‖")
        change.set_ylim(bottom=0)
        # Most changes are near zero and a few are large: linear about zero, logarithmic beyond.
        for axes, linear in ((loss, LINEAR_LOSS), (error, LINEAR_ERROR)):
            low, high = axes.dataLim.intervaly
            axes.set_yscale("symlog", linthresh=linear)
            axes.set_ylim(min(2 * low, -linear), max(2 * high, linear))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: signed(value)))
            axes.axhline(0, color=NEUTRAL, linewidth=0.8)
        loss.set_ylabel("Δ loss, nat\n(symlog)")
        error.set_ylabel("Δ error, points\n(symlog)")
        error.set_xlabel("removed layer")
        error.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"{_depths(part)} layers, {_titled(alt, titled)}"
        head(figure, title)
        legend(figure, style, lines=True)
    caption = (
        f"{_caption(contest, mean, ' in the last panel')} A removed layer is replaced by the identity; over the whole "
        "training set. "
        f"Symlog axes are linear within ±{LINEAR_LOSS:g} nat and ±{LINEAR_ERROR:g} points, and logarithmic beyond."
    )
    return Picture(name, title, f"Lesion curve. {joined(alt)}", caption, figure)


def _line(axes: Axes, own: pd.DataFrame, metric: str, style: Style) -> None:
    """Draw the mean of a metric by layer, with its band if there are several seeds."""
    line_with_band(
        axes,
        own["layer"],
        own[metric],
        style,
        own[f"{metric}_low"],
        own[f"{metric}_high"],
        linewidth=1.2,
        markersize=3.5,
        markevery=max(1, len(own) // 8),
    )


def _seeds(axes: Axes, own: pd.DataFrame, metric: str, style: Style) -> None:
    """Draw a thin line for every seed, where there are too few for the band alone."""
    if 1 < own["seed"].nunique() < DOTS_BELOW:
        for _, run in own.sort_values("layer").groupby("seed"):
            axes.plot(run["layer"], run[metric], color=style.colour, linewidth=0.5, alpha=0.45, zorder=1.5)


def _titled(alt: Sequence[str], label: str) -> str:
    """The description of the network ``label``; without it, of the first one."""
    return next((text for text in alt if text.startswith(f"{label}:")), alt[0])


def _depths(part: pd.DataFrame) -> str:
    return ", ".join(f"{depth:g}" for depth in sorted(part["depth"].unique()))


def _caption(contest: dict[str, object], mean: pd.DataFrame, where: str = "") -> str:
    counts: Sequence[int] = sorted(set(mean["n"]))
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    if counts == [1]:
        return f"{contest_text(contest)}. One seed that trains."
    return (
        f"{contest_text(contest)}. Means over the n = {n} seeds that train, bands 95 % t intervals; thin lines"
        f"{where} are single seeds, where there are fewer than {DOTS_BELOW}."
    )
