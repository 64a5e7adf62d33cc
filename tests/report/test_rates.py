"""Best learning rates and their slopes, from trainings whose best rate is a known power of the depth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any

import pandas as pd
import pytest

from highway_bench.report.figures import svg_text
from highway_bench.report.figures.best_rate import best_rate_by_depth
from highway_bench.report.figures.mixing import cell_text, depth_mixing
from highway_bench.report.results import Results
from highway_bench.results.schema import Row

Make = dict[str, Callable[..., Any]]
GRID = (1.0, 0.3, 0.1, 0.03, 0.01)
DEPTHS = (3, 10, 30, 100)


@pytest.fixture
def search(make: Make) -> Callable[..., list[Row]]:
    """The runs of one block: each rate once, then five fresh seeds at the best rate."""

    def runs(block: str, best: Iterable[float], tried: tuple[float, ...] = GRID, final: float = 0.1) -> list[Row]:
        rows: list[Row] = []
        for depth, rate in zip(DEPTHS, best, strict=True):
            for one in tried:
                for seed in [1_000, *(range(5) if one == rate else ())]:
                    recipe = {"steps": 400, "optimiser": "sgd", "rate": one}
                    base = make["cell"](
                        "trainability", block, "dense", depth, dataset="digits", recipe=recipe, seed=seed
                    )
                    rows += make["training"](base, final * (1 + abs(math.log(one / rate))), rate=one)
        return rows

    return runs


def results_of(make: Make, *rows: list[Row]) -> Results:
    return Results(make["frame"]([row for part in rows for row in part]))


def test_the_slope_is_that_of_the_best_rates(make: Make, search: Callable[..., list[Row]]) -> None:
    result = results_of(make, search("pre-norm", (0.3, 0.1, 0.1, 0.03)), search("highway", (0.1, 0.1, 0.1, 0.1)))
    best = result.best_rates().set_index(["block", "depth"])
    assert list(best.loc["pre-norm", "rate"]) == [0.3, 0.1, 0.1, 0.03]
    assert set(best["n"]) == {6}
    slopes = result.rate_slopes().set_index("block")
    assert slopes.loc["pre-norm", "slope"] == pytest.approx(-0.59, abs=0.02)
    assert slopes.loc["highway", "slope"] == pytest.approx(0, abs=1e-9)
    assert slopes.loc["highway", "slope_low"] < -0.1 < 0.1 < slopes.loc["highway", "slope_high"]  # the grid is coarse
    assert slopes.loc["pre-norm", "slope_low"] < -0.59 < slopes.loc["pre-norm", "slope_high"]


def test_depths_that_were_trained_on_several_machines_are_one_contest(
    make: Make, search: Callable[..., list[Row]]
) -> None:
    rows = search("pre-norm", (0.3, 0.1, 0.1, 0.03))
    deep = [row | {"machine": "other"} if row["depth"] > 20 else row for row in rows]
    fresh = [row | {"machine": "other"} if row["depth"] == 10 and row["seed"] < 1_000 else row for row in rows]
    slopes = [results_of(make, one).rate_slopes()["slope"].tolist() for one in (rows, deep, fresh)]
    assert slopes[0] == slopes[1] == slopes[2]
    assert len(slopes[0]) == 1
    assert set(results_of(make, fresh).best_rates()["edge"]) == {""}


def test_tuning_runs_of_a_protocol_are_one_run_a_rate(make: Make, search: Callable[..., list[Row]]) -> None:
    rows = search("plain", (0.3, 0.1, 0.1, 0.03))
    for row in rows:
        recipe = json.loads(row["recipe"]) | {"own_rate": True}
        row |= {"recipe": json.dumps(recipe), "trial": 0 if row["seed"] == 1_000 else None}
    for ordered in (rows, rows[::-1]):
        best = results_of(make, ordered).best_rates().sort_values("depth")
        assert list(best["rate"]) == [0.3, 0.1, 0.1, 0.03]
        assert set(best["n"]) == {6}
        assert set(best["edge"]) == {""}


def tuned_run(make: Make, rate: float, seed: int, loss: float | None, *, trial: int | None = None) -> list[Row]:
    """A run of highway at a rate that was tuned; it diverged where it has no ``loss``."""
    recipe = {"steps": 400, "optimiser": "sgd", "rate": rate, "own_rate": True}
    base = make["cell"]("trainability", "highway", "dense", 10, dataset="digits", recipe=recipe, seed=seed, trial=trial)
    own = {"recipe": json.dumps(recipe), "trial": trial}
    return [row | own for row in make["training"](base, loss, rate=rate)]


def test_a_rate_that_is_not_stable_waits_for_the_next_lower_one(make: Make) -> None:
    """Half of the seeds diverge at a rate of 1; at 0.3, all of them train."""
    tuning = [tuned_run(make, rate, 1_000, loss, trial=0) for rate, loss in ((1.0, 0.02), (0.3, 0.03))]
    finals = [tuned_run(make, 1.0, seed, None if seed % 2 else 0.02) for seed in range(10)]
    lower = [tuned_run(make, 0.3, seed, 0.03) for seed in range(5)]
    (rung,) = results_of(make, *tuning, *finals).trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("rate", 1.0, 5, 10)
    result = results_of(make, *tuning, *finals, *lower)
    (rung,) = result.trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("trains", 0.3, 5, 5)
    assert len(result.rows["digest"].unique()) == len([*tuning, *finals, *lower])  # what does not count stays in rows
    worse = [tuned_run(make, 0.3, seed, None) for seed in range(5)]
    (rung,) = results_of(make, *tuning, *finals, *worse).trainability().to_dict("records")
    assert (rung["verdict"], rung["rate"], rung["k"], rung["n"]) == ("diverges", 1.0, 5, 10)


def test_the_runs_at_one_rate_count(make: Make) -> None:
    """Ten runs at one rate, of which one failed; then the connection is tuned again, and five run at another."""
    rows = []
    for rate, seeds, day in ((0.03, range(10), 1), (0.01, range(5), 2)):
        recipe = {"steps": 400, "optimiser": "sgd", "rate": rate, "own_rate": True}
        for seed in seeds:
            base = make["cell"]("trainability", "plain", "dense", 10, dataset="digits", recipe=recipe, seed=seed)
            own = {"recipe": json.dumps(recipe), "time_utc": f"2026-01-0{day}"}
            own |= {"status": "timeout"} if (rate, seed) == (0.03, 3) else {}
            rows += [row | own for row in make["training"](base, rate, rate=rate)]
    for ordered in (rows, rows[::-1]):
        (rung,) = results_of(make, ordered).trainability().to_dict("records")
        assert (rung["rate"], rung["final_loss"], rung["seeds"]) == (0.01, pytest.approx(0.01), list(range(5)))
        assert rung["unfinished"] == 0
    asked_again = {"run-2": {"started": "2026-01-03", "digests": [row["digest"] for row in rows[:1]]}}
    (rung,) = Results(make["frame"](rows), asked_again).trainability().to_dict("records")
    assert rung["rate"] == 0.03
    failed = [row | {"status": "oom"} if row["time_utc"] == "2026-01-02" else row for row in rows]
    (rung,) = results_of(make, failed).trainability().to_dict("records")
    assert rung["n"] == 9


def test_rates_at_an_end_are_edges_and_have_no_part_in_the_slope(make: Make, search: Callable[..., list[Row]]) -> None:
    result = results_of(make, search("plain", (1.0, 0.3, 0.1, 0.01)))
    assert list(result.best_rates()["edge"]) == ["highest", "", "", "lowest"]
    (slope,) = result.rate_slopes().to_dict("records")
    assert (slope["n"], slope["edges"]) == (2, 2)
    assert math.isnan(slope["slope"])
    (picture,) = best_rate_by_depth(result)
    assert "1.00 at depth 3, an edge" in picture.alt
    assert picture.title == "dense: too few depths for a slope of the best rate"


def test_depths_at_which_nothing_trains_have_no_part_in_the_slope(make: Make, search: Callable[..., list[Row]]) -> None:
    result = results_of(make, search("plain", (0.3, 0.1, 0.1, 0.03), final=1.0))
    assert result.rate_slopes().empty
    (picture,) = best_rate_by_depth(result)
    assert {text.get_text() for text in picture.figure.legends[0].get_texts()} >= {"no run trains"}


def test_among_rates_with_equal_runs_the_lowest_loss_is_best(make: Make, search: Callable[..., list[Row]]) -> None:
    rows = [row for row in search("plain", (0.3, 0.1, 0.1, 0.03)) if row["seed"] == 1_000]
    assert list(results_of(make, rows).best_rates()["rate"]) == [0.3, 0.1, 0.1, 0.03]


def test_a_ladder_s_tuned_runs_belong_to_its_trials(standard: pd.DataFrame) -> None:
    best = Results(standard).best_rates()
    assert set(best["rate"]) == {0.03}
    assert set(best["n"]) == {6}


def test_the_mixing_matrix_is_drawn_with_its_numbers_in_few_bytes(standard: pd.DataFrame) -> None:
    pictures = depth_mixing(Results(standard))
    assert [picture.name for picture in pictures] == ["mixing-1"]
    panels = [panel for panel in pictures[0].figure.axes if panel.get_visible()]
    assert len(panels) == 3 * 6
    assert [panels[row].get_title(loc="left") for row in (0, 3)] == ["weights, start\n.10 … 1", ".10 … 1"]
    assert len(svg_text(pictures[0])) < 100_000
    assert [cell_text(value) for value in (0.333, 1.0, 12.4, -0.05, 250.0)] == [".33", "1", "12", "−.05", ">99"]
