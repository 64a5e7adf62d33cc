"""Share of successful seeds against depth: one panel per block, with Wilson bands."""

from __future__ import annotations

from typing import Any

import pandas as pd

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    log_axis,
    panels,
    register_figure,
    settings,
    shortened,
    title_size,
)
from highway_bench.report.figures.drawing import intervals, line_with_band
from highway_bench.report.findings import what_trains
from highway_bench.report.labels import contest_text, family_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import STARTED
from highway_bench.report.style import NEUTRAL, Style, of_blocks, styles
from highway_bench.success.ladder import TRAINABLE

MOST_LEVEL = 5  # more labels of depths than this are rotated


@register_figure("success-by-depth", title="success by depth", order=10)
def success_rate(results: Results) -> list[Picture]:
    """One picture per contest."""
    style = styles(results.of_task("trainability")["label"], results.about)
    contests = results.contests()
    every = [contest for contest, _ in contests]
    pictures = [
        _picture(f"success-{number}", contest, part[part["n"] > 0], style, title_of(contest, every, family_name))
        for number, (contest, part) in enumerate(contests, start=1)
        if (part["n"] > 0).any()
    ]
    if not pictures:
        raise NothingToShow("success against depth needs the trainability task with verdicts")
    return pictures


def _picture(
    name: str, contest: dict[str, Any], part: pd.DataFrame, style: dict[str, Style], contest_title: str
) -> Picture:
    style = of_blocks(style, part["block"])
    blocks = list(style)
    depths = sorted(part["depth"].unique())
    titles = {block: "\n".join(shortened(line, 26) for line in block.split(STARTED)) for block in blocks}
    size = title_size(line for title in titles.values() for line in title.split("\n"))
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(blocks), 3, 1.6, sharex=True, sharey=True)
        for panel, block in zip(axes, blocks, strict=True):
            rungs = part[part["block"] == block].sort_values("depth")
            depth, low, high = rungs["depth"], rungs["rate_low"], rungs["rate_high"]
            line_with_band(panel, depth, rungs["k"] / rungs["n"], style[block], low, high, clip_on=False)
            intervals(panel, depth, low, high, style[block], width=1.0)
            panel.axhline(TRAINABLE, color=NEUTRAL, linewidth=0.8, linestyle=":")
            for at, k, n in zip(depth, rungs["k"], rungs["n"], strict=True):
                panel.text(at, -0.14, f"{k}/{n}", ha="center", va="top", fontsize=6.5, rotation=90)
                alt.append(f"{block} at depth {at}: {k} of {n}")
            panel.set_title(titles[block], color=style[block].colour, loc="left", fontsize=size)
            panel.set_ylim(-0.6, 1.06)
            panel.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
        for panel in axes:
            panel.set_xlim(depths[0] / 1.8, depths[-1] * 1.5)
            log_axis(panel, "x", at=depths)
            if len(depths) > MOST_LEVEL:
                panel.tick_params(axis="x", labelrotation=90)
        figure.supxlabel("depth, layers (log)", fontsize=9)
        figure.supylabel("share of seeds", fontsize=9)
        title = f"{contest_title}: {what_trains(part, blocks)}"
        head(figure, title)
    caption = (
        f"{contest_text(contest)}. Numbers below: seeds that succeed, of those run; bands: Wilson 95 % intervals; "
        f"dotted: {TRAINABLE:.0%} of seeds, the limit for “trains”."
    )
    return Picture(name, title, f"Success rate by depth, one panel per block. {joined(alt, 60)}", caption, figure)
