"""Quality against cost: final loss over training time and over bytes per layer, at one depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    register_figure,
    settings,
)
from highway_bench.report.figures.drawing import crosses, point_with_interval
from highway_bench.report.format import quantity, three
from highway_bench.report.labels import contest_text, family_name, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.style import Style, of_blocks, styles
from highway_bench.report.summary_tables import bytes_notes
from highway_bench.report.tables.trainability import gives_verdicts
from highway_bench.success.ladder import FEW, TRAINS


@register_figure("quality-against-cost", title="quality against time and memory", order=40)
def quality_against_cost(results: Results) -> list[Picture]:
    """One picture per contest with two panels, one mark per block: lower left is better."""
    style = styles(results.rows["label"], results.about)
    contests = list(groups(results.summary(), CONTEST))
    trained = [contest for contest, _ in contests if contest["recipe"] and gives_verdicts(contest["recipe"])]
    pictures = []
    for number, (contest, part) in enumerate(contests, start=1):
        part = part[part["final_loss"].notna() & part["training_seconds"].gt(0)]
        comparable = len(set(part["block"])) > 1 and np.isfinite(part["final_loss"]).any()
        if contest in trained and comparable:
            title = title_of(contest, trained, family_name)
            pictures.append(_picture(f"quality-{number}", contest, part, style, title))
    if not pictures:
        raise NothingToShow("quality against cost needs the trainability task with verdicts")
    return pictures


def _picture(
    name: str, contest: dict[str, Any], part: pd.DataFrame, style: dict[str, Style], contest_title: str
) -> Picture:
    depth = int(part["at_depth"].iloc[0])
    costs = [("training_seconds", "s", f"training time, {depth} layers (log)")]
    if part["bytes_per_layer"].gt(0).any():
        costs.append(("bytes_per_layer", "B", "saved bytes per layer (log)"))
    style = of_blocks(style, part["block"])
    alt: list[str] = []
    with settings():
        figure, axes = panels(len(costs), 2, 2.9, sharey=True)
        for panel, (cost, unit, label) in zip(axes, costs, strict=True):
            for cell in rows_of(part[part[cost] > 0]):
                own = style[cell["block"]]
                if np.isfinite(cell["final_loss"]):
                    bounds, trains = (cell["loss_low"], cell["loss_high"]), cell["verdict"] == TRAINS
                    point_with_interval(panel, cell[cost], cell["final_loss"], own, bounds, filled=trains, markersize=7)
                else:
                    crosses(panel, cell[cost], own, edge="top", markersize=7)
            panel.margins(x=0.15)
            log_axis(panel, "x", unit)
            panel.set_xlabel(label)
        log_axis(axes[0], "y")
        axes[0].set_ylabel("final training loss, nat (log)")
        for cell in rows_of(part):
            loss = f"{three(cell['final_loss'])} nat" if np.isfinite(cell["final_loss"]) else "diverged"
            size = f", {quantity(cell['bytes_per_layer'], 'B')} per layer" if cell["bytes_per_layer"] > 0 else ""
            alt.append(f"{cell['block']}: {loss}, {quantity(cell['training_seconds'], 's')} of training{size}")
        title = f"{contest_title}: {_finding(part, depth)}"
        head(figure, title)
        extra = (
            [mark("o", "no verdict that it trains", "#555555", filled=False)]
            if (part["verdict"] != TRAINS).any()
            else []
        )
        extra += [mark("x", "diverged")] if np.isinf(part["final_loss"]).any() else []
        legend(figure, style, extra)
    caption = (
        f"{contest_text(contest)}. Depth {depth}; loss as in the figure by depth; time is the median step time × the "
        "steps of a run. Lower left is better."
    )
    if len(costs) > 1:
        caption += "".join(f" {note}" for note in bytes_notes(part))
    return Picture(name, title, f"Loss against training time and bytes per layer. {joined(alt, 60)}", caption, figure)


def _finding(part: pd.DataFrame, depth: int) -> str:
    if part["verdict"].eq(FEW).any():
        return f"loss and cost at depth {depth:,}; not enough seeds for a ranking"
    best = part.sort_values("final_loss", kind="stable").iloc[0]
    fastest = part.sort_values("training_seconds", kind="stable").iloc[0]
    first = f"at depth {depth:,} {best['block']} has the lowest loss, {three(best['final_loss'])}"
    seconds = quantity(best["training_seconds"], "s")
    if best["block"] == fastest["block"]:
        return f"{first}, and the shortest training, {seconds}"
    # No ratio of the two times: the steps of these runs were not sampled in turn.
    shortest = quantity(fastest["training_seconds"], "s")
    return f"{first}, after {seconds} of training; {fastest['block']} has the shortest training, {shortest}"
