"""Loss by training step of the short runs without a verdict."""

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
    register_figure,
    settings,
    shortened,
)
from highway_bench.report.figures.drawing import line_with_band
from highway_bench.report.format import listed, three
from highway_bench.report.labels import contest_name
from highway_bench.report.results import Results
from highway_bench.report.rows import groups, mapped
from highway_bench.report.style import of_blocks, styles
from highway_bench.report.tables.trainability import gives_verdicts
from highway_bench.results.schema import Status

PANEL = ("family_label", "dataset", "depth", "nominal_width", "match", "device", "machine", "machine_label")
MOST = 8


@register_figure("loss-curves", title="loss curves without verdict", order=70)
def loss_curves(results: Results) -> list[Picture]:
    """Pictures of up to ``MOST`` panels: one panel per family and depth, one line per block and seed."""
    frame = results.of_task("trainability")
    short = frame[~mapped(frame["recipe"], gives_verdicts).astype(bool) & frame["trial"].isna()]
    points = short[(short["metric"] == "loss") & (short["axis"] == "step")]
    if points.empty:
        raise NothingToShow("loss curves need short training runs without a verdict")
    order = results.about.family_order(points["family_label"])
    runs = sorted(groups(points, PANEL), key=lambda item: (order.index(item[0]["family_label"]), item[0]["depth"]))
    chunks = [runs[start : start + MOST] for start in range(0, len(runs), MOST)]
    return [_picture(f"curves-{number}", chunk, results) for number, chunk in enumerate(chunks, start=1)]


def _picture(name: str, chunk: list[tuple[dict[str, object], pd.DataFrame]], results: Results) -> Picture:
    style = of_blocks(
        styles(results.of_task("trainability")["label"], results.about),
        (block for _, part in chunk for block in part["label"].unique()),
    )
    alt: list[str] = []
    diverged = False
    with settings():
        figure, axes = panels(len(chunk), 2, 1.75, sharey=True)
        for panel, (setting, part) in zip(axes, chunk, strict=True):
            for block in style:
                for _, run in groups(part[part["label"] == block], ["digest", "seed"]):
                    run = run.sort_values("index")
                    finite = run[np.isfinite(run["value"]) & (run["value"] > 0)]
                    if finite.empty:
                        continue
                    every = max(1, len(finite) // 4)
                    line_with_band(panel, finite["index"], finite["value"], style[block], markevery=every, markersize=4)
                    last = finite.iloc[-1]
                    if (run["status"] == Status.DIVERGED).any():
                        diverged = True
                        panel.plot(last["index"], last["value"], marker="x", markersize=8, color=style[block].colour)
                    alt.append(
                        f"{setting['family_label']}, {block}: {three(finite['value'].iloc[0])} to "
                        f"{three(last['value'])} nat by step {last['index']:g}"
                    )
            panel.set_title(shortened(f"{setting['family_label']}, depth {setting['depth']}", 30), loc="left")
            log_axis(panel, "y")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for panel in axes[-2:]:
            panel.set_xlabel("training step")
        figure.supylabel("training loss, nat (log)", fontsize=9)
        families = results.about.family_order(str(setting["family_label"]) for setting, _ in chunk)
        title = f"One short run per block in {listed(families)}: the first fall of the loss, no verdict on depth"
        head(figure, title)
        legend(figure, style, [mark("x", "diverged")] if diverged else [], lines=True)
    data = ", ".join(dict.fromkeys(contest_name(setting) for setting, _ in chunk))
    caption = f"{data}. One seed and few steps: no ranking of blocks and no verdict on depths."
    return Picture(name, title, f"Loss curves without verdict. {joined(alt, 60)}", caption, figure)
