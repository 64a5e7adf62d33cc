"""Best learning rate by depth, one panel per block, with the slope of the fitted line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    dodge,
    head,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    register_figure,
    settings,
    shortened,
    title_size,
)
from highway_bench.report.figures.drawing import line_with_band, point_with_interval
from highway_bench.report.format import between, listed, signed, three
from highway_bench.report.labels import contest_text, family_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of, without_start
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles
from highway_bench.report.tables.rates import LEAST_DEPTHS

RANGE = (0.5, 2.0)  # of a single best rate, on a log axis
APART = 1.25  # the ratio of the depths at which two starts of a block are drawn, so that both are seen
LINE = 7  # points from one line of text to the next
SLOPES_ABOVE = 3 + 2 * LINE  # points between a panel and its title
RING: dict[str, Any] = {"markersize": 11, "markeredgewidth": 0.8}


@register_figure("best-rate", title="best learning rate by depth", order=130)
def best_rate_by_depth(results: Results) -> list[Picture]:
    """One picture per contest with enough depths for a slope: a panel per block, in it marks and a line per start."""
    best = results.best_rates()
    contests = [(contest, part) for contest, part in groups(best, CONTEST) if len(set(part["depth"])) >= LEAST_DEPTHS]
    if not contests:
        raise NothingToShow("the best rate by depth needs the trainability task with several rates at three depths")
    slopes, style = results.rate_slopes(), styles(best["block"], results.about)
    fitted = {tuple(setting.values()): part for setting, part in groups(slopes, CONTEST)}
    return [
        _picture(
            f"best-rate-{number}",
            contest,
            part,
            fitted.get(tuple(contest.values()), slopes.iloc[:0]),
            style,
            title_of(contest, [other for other, _ in contests], family_name),
        )
        for number, (contest, part) in enumerate(contests, start=1)
    ]


def _picture(
    name: str,
    contest: dict[str, Any],
    part: pd.DataFrame,
    slopes: pd.DataFrame,
    style: dict[str, Style],
    contest_title: str,
) -> Picture:
    style = of_blocks(style, part["block"])
    blocks = list(dict.fromkeys(map(without_start, style)))
    depths = sorted(part["depth"].unique())
    lines = {record["block"]: record for record in rows_of(slopes)}
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(blocks), 3, 1.7, sharex=True, sharey=True)
        for panel, block in zip(axes, blocks, strict=True):
            panel.set_title(shortened(block, 26), loc="left", fontsize=title_size(blocks), pad=SLOPES_ABOVE)
            own_labels = [label for label in style if without_start(label) == block]
            for row, label in enumerate(own_labels):
                own = part[part["block"] == label].sort_values("depth")
                shift = APART ** dodge(row, len(own_labels))
                alt.append(f"{label}: {_draw(panel, own, lines.get(label), style[label], shift)}")
                which = "slope" if len(own_labels) < 2 else "filled" if style[label].filled else "open"
                _write_slope(panel, lines.get(label), style[label], which, len(own_labels) - 1 - row)
        for panel in axes:
            panel.set_xlim(depths[0] / 1.3, depths[-1] * 1.3)
            log_axis(panel, "x", at=depths)
            panel.tick_params(axis="x", labelrotation=90 if len(depths) > 4 else 0)
            panel.set_ylim(part["rate"].min() * RANGE[0], part["rate"].max() * RANGE[1])
            log_axis(panel, "y")
        for panel in axes[-3:]:
            panel.set_xlabel("depth, layers (log)")
        figure.supylabel("best learning rate (log)", fontsize=9)
        title = f"{contest_title}: {_finding(slopes)}"
        head(figure, title)
        at_edge = [mark("o", "at an end of the tried rates", filled=False, **RING)] if part["edge"].ne("").any() else []
        untrained = [mark("x", "no run trains")] if part["k"].eq(0).any() else []
        legend(figure, style, [*at_edge, *untrained])
    caption = (
        f"{contest_text(contest)}. Lines: ln rate against ln depth by least squares, over depths that train and whose "
        "best rate is inside of those tried. Numbers: its slope with the 95 % interval, for at least three such "
        "depths; of two starts, that of the filled and of the open marks."
    )
    return Picture(name, title, f"Best learning rate by depth. {joined(alt, 60)}", caption, figure)


def _draw(panel: Axes, own: pd.DataFrame, line: dict[str, Any] | None, style: Style, shift: float) -> str:
    """Draw one block's rates and its line, at depths times ``shift``; returns them in words."""
    for point in rows_of(own):
        shape = style if point["k"] else replace(style, marker="x")
        point_with_interval(panel, point["depth"] * shift, point["rate"], shape)
        if point["edge"]:
            panel.plot(point["depth"] * shift, point["rate"], color=NEUTRAL, marker="o", markerfacecolor="none", **RING)
    points = ", ".join(
        f"{three(point['rate'])} at depth {point['depth']:g}" + (", an edge" if point["edge"] else "")
        for point in rows_of(own)
    )
    if line is None or np.isnan(line["slope"]):
        return f"{points}; no slope"
    fitted = own[own["k"].gt(0) & own["edge"].eq("")]
    depths = np.array([fitted["depth"].min(), fitted["depth"].max()], dtype=float)
    line_with_band(panel, depths * shift, np.exp(line["intercept"]) * depths ** line["slope"], style, marker="none")
    return f"{points}; slope {_slope_text(line)}"


def _write_slope(panel: Axes, line: dict[str, Any] | None, style: Style, which: str, row: int) -> None:
    """Write the slope above the panel, in the colour of its line; each start has a row, counted from below."""
    if line is not None and not np.isnan(line["slope"]):
        panel.annotate(
            f"{which} {_slope_text(line)}",
            (0, 1),
            (0, 2 + LINE * row),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=5.5,
            color=style.colour,
        )


def _slope_text(line: dict[str, Any]) -> str:
    return f"{signed(line['slope'], 'z.2f')} {between(line['slope_low'], line['slope_high'])}"


def _finding(slopes: pd.DataFrame) -> str:
    """Which best rates rise or fall with depth, by intervals that do not hold 0."""
    known = slopes[slopes["slope"].notna()]
    if known.empty:
        return "too few depths for a slope of the best rate"
    ways = []
    for way, shown in (("rises", known["slope_low"] > 0), ("falls", known["slope_high"] < 0)):
        if shown.any():
            ways.append(f"{way} with depth under {listed(list(known.loc[shown, 'block']))}")
    return f"the best rate {', and '.join(ways)}" if ways else "no best rate is shown to change with depth"
