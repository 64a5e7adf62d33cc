"""Quality against step time: what is on the front, and what a title may say."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pandas as pd

from highway_bench.report.figures.loss_depth import loss_by_depth
from highway_bench.report.figures.quality import pareto_front, quality_against_time
from highway_bench.report.results import Results
from highway_bench.results.schema import Row

Make = dict[str, Callable[..., Any]]
PLAIN = [1.0, 1.1, 1.2, 1.1, 1.0, 1.1, 1.2, 1.0]


def ladder(make: Make, losses: dict[tuple[str, int], list[float | None]], **values: Any) -> list[Row]:
    """Runs with these final losses, one a seed."""
    recipe = make["ladder"] | values.pop("recipe", {})
    family = values.pop("family", "dense")
    rows = []
    for (block, depth), by_seed in losses.items():
        for seed, loss in enumerate(by_seed):
            base = make["cell"](
                "trainability", block, family, depth, dataset="digits", recipe=recipe, seed=seed, **values
            )
            rows += make["training"](base, loss, rate=0.03)
    return rows


def timed(make: Make, costs: dict[str, float], depth: int, **values: Any) -> list[Row]:
    rows = []
    for block, cost in costs.items():
        base = make["cell"]("throughput", block, "dense", depth, **{"phase": "forward-backward"} | values)
        rows += make["timing"](base, [cost * x for x in PLAIN], PLAIN)
    return rows


def results_of(make: Make, rows: list[Row]) -> Results:
    return Results(make["frame"](rows))


def spread(middle: float, n: int = 5) -> list[float]:
    """Losses that scatter by a few per cent about ``middle``, in the same way at each seed."""
    return [middle * (1 + 0.01 * (seed % 3)) for seed in range(n)]


def test_the_plot_has_the_front_chance_threshold_and_memory(make: Make) -> None:
    losses = {("plain", 10): [2.0] * 5, ("highway", 10): spread(0.05), ("residual", 10): spread(0.1)}
    rows = ladder(make, losses | {("post-norm", 10): spread(0.2)})
    rows += timed(make, {"plain": 1.0, "residual": 1.1, "post-norm": 1.2, "highway": 1.5}, 10)
    for block, size in (("residual", 100.0), ("highway", 400.0)):
        rows += make["memory"](make["cell"]("memory", block, "dense", 10), size)
    (picture,) = quality_against_time(results_of(make, rows))
    assert picture.title == "On the front of loss and step time: dense, depth 10: residual and highway"
    (panel,) = picture.figure.axes
    assert panel.get_xlabel() == "forward-backward step, s (log)"
    assert {text.get_text() for text in panel.texts} == {"chance 2.30", "threshold 0.230"}
    heights = {round(float(line.get_ydata()[0]), 9) for line in panel.lines}
    assert heights >= {round(math.log(10), 9), round(0.1 * math.log(10), 9)}
    sizes = {line.get_marker(): line.get_markersize() for line in panel.lines if line.get_marker() in ("s", "^")}
    assert sizes["s"] > sizes["^"]
    assert "highway: loss 0.0504, 1.65 s a step, 400 B per layer" in picture.alt


def test_the_title_of_many_panels_names_what_is_on_most_fronts(make: Make) -> None:
    rows = []
    for family in ("dense", "conv", "mlp", "bilstm"):
        losses = {("plain", 10): [2.0] * 5, ("highway", 10): spread(0.05), ("residual", 10): spread(0.1)}
        rows += ladder(make, losses, family=family)
    (picture,) = quality_against_time(results_of(make, rows))
    assert picture.title == "highway is on the front of loss and step time in 4 of 4 panels"
    assert len(picture.figure.axes) == 4


def test_the_front_is_of_what_trains(make: Make) -> None:
    points = pd.DataFrame(
        {
            "block": list("abcd"),
            "seconds": [1.0, 2.0, 3.0, 4.0],
            "final_loss": [0.01, 0.3, 0.2, 0.25],
            "verdict": ["fails", "trains", "trains", "trains"],
        }
    )
    assert list(pareto_front(points)["block"]) == ["b", "c"]


def test_no_title_measures_a_connection_by_one_that_does_not_train(results: Results) -> None:
    titles = [picture.title for draw in (loss_by_depth, quality_against_time) for picture in draw(results)]
    fails = {cell["block"] for _, part in results.contests() for cell in part.to_dict("records") if not cell["k"]}
    assert "plain" in fails
    for title in titles:
        assert not re.search(r"(than|against|below|times|one of|next of those that train is) plain\b", title)
