"""Loss by step of the short runs that give no verdict."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from highway_bench.report.figures.base import (
    NothingToShow,
    Picture,
    head,
    joined,
    legend,
    log_axis,
    mark,
    panels,
    settings,
    shown,
)
from highway_bench.report.format import listed, three
from highway_bench.report.rows import family_order, groups, of_task, prepared
from highway_bench.report.style import looks
from highway_bench.report.tables.labels import contest_name
from highway_bench.report.tables.trainability import gives_verdicts
from highway_bench.results.schema import Status

PANEL = ("family_label", "dataset", "depth", "nominal_width", "match", "device", "machine", "machine_label")
MOST = 8


def loss_curves(rows: pd.DataFrame) -> list[Picture]:
    """Pictures of up to eight panels: one a family and depth, a line a block and seed; the title says "no verdict"."""
    frame = of_task(rows, "trainability")
    short = frame[~frame["recipe"].map(gives_verdicts) & frame["trial"].isna()]
    points = short[(short["metric"] == "loss") & (short["axis"] == "step")]
    if points.empty:
        raise NothingToShow("loss curves need short training runs without a verdict")
    order = family_order(points["family_label"])
    places = sorted(groups(points, PANEL), key=lambda item: (order.index(item[0]["family_label"]), item[0]["depth"]))
    chunks = [places[start : start + MOST] for start in range(0, len(places), MOST)]
    return [_picture(f"curves-{number}", chunk, prepared(rows)) for number, chunk in enumerate(chunks, start=1)]


def _picture(name: str, places: list[tuple[dict[str, object], pd.DataFrame]], frame: pd.DataFrame) -> Picture:
    look = looks(frame["label"])
    drawn = [block for block in look if any((part["label"] == block).any() for _, part in places)]
    told: list[str] = []
    diverged = False
    with settings():
        figure, axes = panels(len(places), 2, 1.75, sharey=True)
        for panel, (place, part) in zip(axes, places, strict=True):
            for block in drawn:
                for _, run in groups(part[part["label"] == block], ["digest", "seed"]):
                    run = run.sort_values("index")
                    finite = run[np.isfinite(run["value"]) & (run["value"] > 0)]
                    if finite.empty:
                        continue
                    panel.plot(
                        finite["index"],
                        finite["value"],
                        color=look[block].colour,
                        linestyle=look[block].dash,
                        marker=look[block].marker,
                        markevery=max(1, len(finite) // 4),
                        markersize=4,
                    )
                    last = finite.iloc[-1]
                    if (run["status"] == Status.DIVERGED).any():
                        diverged = True
                        panel.plot(last["index"], last["value"], marker="x", markersize=8, color=look[block].colour)
                    told.append(
                        f"{place['family_label']}, {block}: {three(finite['value'].iloc[0])} to "
                        f"{three(last['value'])} nat by step {last['index']:g}"
                    )
            panel.set_title(shown(f"{place['family_label']}, depth {place['depth']}", 30), loc="left")
            log_axis(panel, "y")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for panel in axes[-2:]:
            panel.set_xlabel("training step")
        figure.supylabel("training loss, nat (log)", fontsize=9)
        families = family_order(str(place["family_label"]) for place, _ in places)
        title = f"One short run a block in {listed(families)}: how the loss starts to fall, no verdict on depth"
        head(figure, title)
        legend(figure, {block: look[block] for block in drawn}, [mark("x", "diverged")] if diverged else [], lines=True)
    data = ", ".join(dict.fromkeys(contest_name(place) for place, _ in places))
    caption = f"{data}. One seed and too few steps: neither a ranking nor a frontier."
    return Picture(name, title, f"Loss curves without verdict. {joined(told, 60)}", caption, figure)
