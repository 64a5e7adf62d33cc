"""The answer and the matrix: a row for every family and depth, in words that the stored rows bear out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from highway_bench.measure.paired import contrasts, leaders
from highway_bench.report.answer_table import answer_table
from highway_bench.report.figures.loss_depth import loss_by_depth
from highway_bench.report.figures.quality import pareto_front, quality_against_time
from highway_bench.report.matrix import matrices
from highway_bench.report.results import Results
from highway_bench.report.tables.answer import AHEAD, ALONE, NOT_MEASURED, TIED, UNDECIDED
from highway_bench.report.tables.ranking import lead
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


def printed(results: Results) -> list[dict[str, str]]:
    """The table of the answer by heading; a heading without content is left out."""
    shown = answer_table(results)
    rows = [[entry.replace("\N{NO-BREAK SPACE}", " ") for entry in row] for row in shown.entries]
    return [dict(zip((head.text for head in shown.heads), row, strict=True)) for row in rows]


def spread(middle: float, n: int = 5) -> list[float]:
    """Losses that scatter by a few per cent about ``middle``, in the same way at each seed."""
    return [middle * (1 + 0.01 * (seed % 3)) for seed in range(n)]


def covered(results: Results) -> set[tuple[str, int]]:
    """The families and depths that have an answer."""
    return {(answer.family.partition(" ")[0], depth) for answer in results.answer() for depth in answer.depths}


def test_every_family_and_depth_of_the_store_has_an_answer(
    standard: pd.DataFrame, results: Results, make: Make
) -> None:
    one_kind = make["frame"](
        [row for row in make["whole"](("plain", "highway")) if row["task"] in ("throughput", "memory")]
    )
    for frame, of_frame in ((standard, results), (one_kind, Results(one_kind))):
        pairs = set(zip(frame["family"], frame["depth"].astype(int), strict=True))
        assert pairs <= covered(of_frame)


def test_not_measured_is_in_the_table_for_a_family_and_for_a_depth(make: Make) -> None:
    rows = ladder(make, {("plain", depth): [0.1] * 5 for depth in (10, 20)} | {("highway", 10): [0.1] * 5})
    rows += ladder(make, {("plain", 10): [0.1] * 5, ("highway", 10): [0.1] * 5}, family="conv")
    rows += make["memory"](make["cell"]("memory", "plain", "conv", 20), 10.0)
    rows += make["memory"](make["cell"]("memory", "plain", "mlp", 4), 10.0)
    gaps = {(row["family"], row["depth"]): row["use"] for row in printed(results_of(make, rows))}
    assert gaps["conv", "20"] == NOT_MEASURED
    assert gaps["mlp", "4"] == NOT_MEASURED
    assert gaps["dense on digits", "20"] == UNDECIDED


def test_ahead_with_margin_cost_and_accuracy_at_one_depth(make: Make) -> None:
    losses = {("plain", 10): [2.0] * 5, ("highway", 10): spread(0.1), ("residual", 10): [x * 0.5 for x in spread(0.1)]}
    rows = ladder(make, losses)
    rows += timed(make, {"plain": 1.0, "residual": 1.1}, 10) + timed(make, {"plain": 1.0, "residual": 3.0}, 50)
    rows += make["memory"](make["cell"]("memory", "residual", "dense", 10), 300.0)
    rows += make["memory"](make["cell"]("memory", "residual", "dense", 50), 900.0)
    rows += make["memory"](make["cell"]("memory", "plain", "dense", 10), 100.0)
    results = results_of(make, rows)
    (answer,) = [answer for answer in results.answer() if answer.verdict != NOT_MEASURED]
    assert (answer.verdict, answer.use, answer.avoid) == (AHEAD, ("residual",), (("plain", 0, 5, 0, 0.03),))
    assert answer.margin is not None
    assert answer.margin.ratio == pytest.approx(0.5)
    row = next(row for row in printed(results) if row["use"] == "residual")
    assert row["forward-backward step ÷ plain's"] == "1.10 [1.10, 1.10]"
    assert row["bytes per layer (÷ plain's)"] == "300 B (3.00)"
    without_plain = results_of(make, [one for one in rows if (one["task"], one["block"]) != ("trainability", "plain")])
    assert "300 B (3.00)" in {row["bytes per layer (÷ plain's)"] for row in printed(without_plain)}
    assert re.fullmatch(r"\d\d\.\d %", row["test accuracy"])
    assert row["how sure"] == "ahead: loss 50.0 % [50.0, 50.0] below that of highway, 5 seeds"
    assert row["avoid"] == "plain (0 of 5)"
    assert row["learning rate"] == "0.03, sgd"


def test_tied_names_the_interval_and_the_seeds(make: Make) -> None:
    noisy = [0.1, 0.05, 0.12, 0.06, 0.09]
    rows = ladder(
        make, {("highway", 10): noisy, ("residual", 10): [0.11, 0.06, 0.08, 0.05, 0.11], ("plain", 10): [2.0] * 5}
    )
    rows += timed(make, {"plain": 1.0, "highway": 1.1, "residual": 1.5}, 10)
    results = results_of(make, rows)
    (answer,) = results.answer()
    assert (answer.verdict, answer.use, answer.cheapest) == (TIED, ("residual", "highway"), "highway")
    (row,) = printed(results)
    assert row["use"] == "residual or highway"
    margin = r"(\S+)'s loss \S+ % \[−\S+, \d\S+\] below that of \S+"
    pattern = rf"tied: {margin}, 5 seeds; (about \d+ would|even 100 would not) decide"
    assert re.fullmatch(pattern, row["how sure"])
    assert row["forward-backward step ÷ plain's"] == "residual 1.50 [1.50, 1.50]; highway 1.10 [1.10, 1.10]"


@pytest.mark.parametrize(
    ("losses", "verdict", "reason"),
    [
        ({("plain", 10): [2.0] * 5, ("highway", 10): [0.1] * 5}, ALONE, "5 of 5 seeds"),
        ({("residual", 10): [0.1] * 4 + [2.0]}, UNDECIDED, "only residual was trained: 4 of 5 seeds succeed"),
        ({("plain", 10): [2.0] * 5, ("highway", 10): [None] * 5}, UNDECIDED,
         "no connection that was tried trains with any seed (5 seeds): not testable with this budget"),
        ({("plain", 10): [0.1] * 3 + [2.0] * 2, ("highway", 10): [2.0] * 5}, UNDECIDED,
         "no connection that was tried trains reliably (5 seeds)"),
        ({("plain", 10): [0.1] * 2, ("highway", 10): [0.1] * 2}, UNDECIDED, "2 seeds, and a verdict needs 5"),
    ],
)  # fmt: skip
def test_what_is_not_decided_says_why(
    make: Make, losses: dict[tuple[str, int], list[float | None]], verdict: str, reason: str
) -> None:
    (answer,) = results_of(make, ladder(make, losses)).answer()
    assert (answer.verdict, answer.reason) == (verdict, reason)


def test_ahead_needs_every_interval_below_one(make: Make) -> None:
    """Two blocks are one comparison, at 95 %; with more that may be the best, each interval is wider."""
    losses = [0.1, 0.11, 0.09, 0.12, 0.1, 0.11]
    ratios = [1.25, 1.05, 1.22, 1.04, 1.2, 1.1]
    other = [loss * ratio for loss, ratio in zip(losses, ratios, strict=True)]
    runs = results_of(make, ladder(make, {("plain", 10): losses, ("highway", 10): other})).training_runs()
    alone = lead(runs, ["plain", "highway"])
    assert (alone.best, alone.tied) == ("plain", ())
    logs = [-math.log(ratio) for ratio in ratios]
    mean = sum(logs) / 6
    deviation = math.sqrt(sum((x - mean) ** 2 for x in logs) / 5)
    assert alone.margins[0].high == pytest.approx(math.exp(mean + 2.5706 * deviation / math.sqrt(6)), rel=1e-4)
    many = {("plain", 10): losses, ("highway", 10): other} | {(f"my-{i}", 10): other for i in range(30)}
    runs = results_of(make, ladder(make, many)).training_runs()
    assert "highway" in lead(runs, [block for block, _ in many]).tied


def test_the_page_and_the_contrasts_judge_the_same_losses_alike(make: Make) -> None:
    """Verdicts are Holm's, as those of ``measure.paired``. With Bonferroni's correction some of these would be tied."""
    draw = random.Random(0)
    stricter = 0
    for _ in range(20):
        losses = {
            (f"my-{index}", 10): [0.1 * 1.03**index * draw.lognormvariate(0, 0.05) for _ in range(6)]
            for index in range(5)
        }
        runs = results_of(make, ladder(make, losses)).training_runs()
        found = lead(runs, [block for block, _ in losses])
        logs = {block: dict(enumerate(map(math.log, values))) for (block, _), values in losses.items()}
        best, *tied = leaders(logs)
        assert (found.best, set(found.tied)) == (best, set(tied))
        every = contrasts(logs, best, 1 - 0.05 / 4)
        stricter += sum(every[block].difference.low <= 0 for block in every if block not in tied)
        assert all(margin.low <= margin.ratio <= margin.high for margin in found.margins)
    assert stricter > 0


def test_a_diverged_run_counts_with_the_largest_loss_and_few_seeds_decide_nothing(make: Make) -> None:
    good = spread(0.1, 10)
    rows = ladder(make, {("highway", 10): good, ("residual", 10): [None, *[2 * x for x in good[1:]]]})
    runs = results_of(make, rows).training_runs()
    assert lead(runs, ["highway", "residual"]).tied == ()
    one = runs[runs["seed"] == 1]
    assert lead(one, ["highway", "residual"]).tied == ("residual",)


def test_the_best_is_that_of_the_seeds_that_all_have(make: Make) -> None:
    """The other block's further seeds are lower, and worse at each seed that both have."""
    losses = {("highway", 10): spread(0.1), ("residual", 10): [*spread(0.105), *[0.01] * 5]}
    found = lead(results_of(make, ladder(make, losses)).training_runs(), ["highway", "residual"])
    assert (found.best, found.tied) == ("highway", ())


def test_a_loss_of_zero_is_the_lowest(make: Make) -> None:
    runs = results_of(make, ladder(make, {("highway", 10): [0.0] * 5, ("residual", 10): spread(0.1)})).training_runs()
    assert lead(runs, ["residual", "highway"]).best == "highway"
    assert lead(runs.assign(final_loss=0.0), ["highway", "residual"]).tied == ("residual",)


def test_best_rates_at_an_edge_are_marked_also_of_what_fails(make: Make) -> None:
    rows = ladder(make, {("residual", 10): [2.0] * 5, ("highway", 10): [0.1] * 5}, recipe={"rates": [0.03, 0.1]})
    results = results_of(make, rows)
    (row,) = printed(results)
    assert (row["use"], row["avoid"]) == ("highway †", "residual † (0 of 5)")
    assert "residual (0.03, the lowest) at depth 10" in answer_table(results).note
    (matrix,) = matrices(results)
    assert [cells[0].lines[-1] for _, _, cells in matrix.rows] == ["lowest rate", "lowest rate"]


def test_of_many_that_are_tied_the_lowest_loss_is_named_with_the_cost_of_the_cheapest(make: Make) -> None:
    losses = {(f"my-{index}", 10): [0.1] * 5 for index in range(7)} | {(f"other-{i}", 10): [2.0] * 5 for i in range(9)}
    rows = ladder(make, losses)
    (row,) = printed(results_of(make, rows))
    assert row["use"] == "my-0, the lowest loss of 7 tied"
    assert row["avoid"] == "other-0, other-1, other-2, other-3, other-4, other-5, other-6, 2 others (0 of 5 each)"
    rows += timed(make, {"plain": 1.0} | {f"my-{index}": 2 - 0.1 * index for index in range(7)}, 10)
    (row,) = printed(results_of(make, rows))
    assert row["use"] == "my-0, the lowest loss of 7 tied"
    assert row["forward-backward step ÷ plain's"] == "2.00 [2.00, 2.00]; the lowest of the 7: my-6 1.40 [1.40, 1.40]"


def test_what_may_train_by_its_interval_is_avoided_perhaps(make: Make) -> None:
    """At 4 of 5 seeds Wilson's interval reaches 96 %, at 3 of 5 only 88 %."""
    losses = {("highway", 10): spread(0.1), ("plain", 10): [0.1] * 4 + [2.0], ("residual", 10): [0.1] * 3 + [2.0, None]}
    results = results_of(make, ladder(make, losses))
    (answer,) = results.answer()
    assert (answer.avoid, answer.unsure) == ((("residual", 3, 5, 1, 0.03),), (("plain", 4, 5, 0, 0.03),))
    (row,) = printed(results)
    assert row["avoid"] == "residual (3 of 5, 1 diverged at rate 0.03); perhaps plain (4 of 5)"
    (matrix,) = matrices(results)
    assert matrix.title == "dense on digits: at depth 10 highway trains; residual does not; perhaps plain does not"
    cells = {name: (cell.lines[0], cell.colour) for name, _, (cell,) in matrix.rows}
    assert (cells["plain"], cells["residual"]) == (("perhaps fails 4/5", "open"), ("fails 3/5", "fails"))


def test_what_failed_at_a_smaller_depth_and_was_not_tried_at_this_one_is_named(make: Make) -> None:
    losses = {("plain", 10): [2.0] * 5, ("highway", 10): spread(0.1), ("highway", 20): spread(0.1)}
    losses |= {("residual", 10): spread(0.2), ("residual", 20): [2.0] * 5}
    found = {
        row["depth"]: (row["avoid"], row["not tried here"]) for row in printed(results_of(make, ladder(make, losses)))
    }
    assert found == {"10": ("plain (0 of 5)", ""), "20": ("residual (0 of 5)", "plain")}


def test_what_fails_at_a_depth_and_trains_at_a_greater_one_is_noted(make: Make) -> None:
    losses = {("plain", 10): [2.0] * 5, ("plain", 20): spread(0.1), ("highway", 10): spread(0.1)}
    note = "may train at a greater one"
    table = answer_table(results_of(make, ladder(make, losses)))
    assert f"One that fails at a depth {note}. dense on digits: plain (fails at 10, trains at 20)." in table.note
    losses[("plain", 20)] = [2.0] * 5
    assert note not in answer_table(results_of(make, ladder(make, losses))).note


def test_a_family_without_any_verdict_comes_last(make: Make) -> None:
    rows = ladder(make, {("plain", 10): spread(0.1, 2), ("highway", 10): spread(0.01, 2)}, family="conv")
    rows += ladder(make, {("plain", 10): spread(0.1), ("highway", 10): spread(0.01)}, family="dense")
    verdicts = [(answer.family.partition(" ")[0], bool(answer.use)) for answer in results_of(make, rows).answer()]
    assert verdicts == [("dense", True), ("conv", False)]


def test_seeds_that_blocks_do_not_share_decide_nothing(make: Make) -> None:
    rows = ladder(make, {("highway", 10): [0.1] * 5}) + [
        row | {"seed": row["seed"] + 9, "digest": f"{row['digest']}/9"}
        for row in ladder(make, {("residual", 10): [0.2] * 5})
    ]
    (row,) = printed(results_of(make, rows))
    assert (row["use"], row["how sure"]) == (
        "highway or residual",
        "tied: highway and residual, too few seeds in common",
    )


def test_the_bare_sum_and_starts_are_named_where_it_fails(make: Make) -> None:
    rows = ladder(make, {("residual", 10): [2.0] * 5, ("highway", 10): [0.1] * 5})
    scaled = ladder(make, {("residual", 10): [0.1] * 5}, family_options='{"init":"scaled-branch"}')
    rows += [row | {"digest": f"{row['digest']}/scaled"} for row in scaled]
    results = Results(make["frame"](rows), {"run-1": {"blocks": {"residual": {"equation": "y = x + H(x)"}}}})
    (answer,) = results.answer()
    assert "residual · scaled-branch" in answer.use
    assert answer.avoid == (("residual", 0, 5, 0, 0.03),)
    note = answer_table(results).note
    assert "residual is the bare sum y = x + H(x)" in note
    assert "Start scaled-branch: The default, with the last map of each branch divided by √L" in note
    assert (
        "These train with one start but not with another, at the depths in brackets; their shares of seeds differ "
        "significantly (Fisher's exact test, 5 %). dense, scaled-branch but not default: residual (10)." in note
    )


def test_the_start_of_all_connections_is_named(make: Make) -> None:
    rows = ladder(make, {("residual", 10): [0.2] * 5, ("highway", 10): [0.1] * 5}, start="depth-aware")
    blocks = {"residual": {"starts": {"depth-aware": "last map ÷ √L"}}}
    note = answer_table(Results(make["frame"](rows), {"run-1": {"blocks": blocks}})).note
    assert "All connections have the depth-aware start (residual: last map ÷ √L)." in note


def test_costs_are_of_one_phase(make: Make) -> None:
    rows = ladder(make, {("plain", 10): [2.0] * 5, ("highway", 10): [0.1] * 5})
    rows += timed(make, {"plain": 1.0, "highway": 2.0}, 10) + timed(make, {"plain": 1.0}, 10, phase="train-step")
    rows += timed(make, {"plain": 1.0, "highway": 3.0}, 50, phase="forward")
    results = results_of(make, rows)
    assert results.phase() == "forward-backward"
    assert printed(results)[0]["forward-backward step ÷ plain's"] == "2.00 [2.00, 2.00]"
    assert set(results.costs()["ratio"].dropna()) == {1.0, 2.0}


@pytest.mark.parametrize(
    ("trained", "timed_on", "ratios"),
    [
        ("cpu-amd-epyc-2c", "cpu-amd-epyc-f26m2-avx512-2c", {1.0, 2.0}),  # one of those that had this name
        ("cpu-amd-epyc-2c", "cpu-intel-xeon-2c", set()),
        ("cpu-amd-epyc-f25m1-avx2-2c", "cpu-amd-epyc-f26m2-avx512-2c", set()),
    ],
)
def test_costs_are_of_the_contests_machine(make: Make, trained: str, timed_on: str, ratios: set[float]) -> None:
    rows = ladder(make, {("plain", 10): [2.0] * 5, ("highway", 10): [0.1] * 5}, machine=trained)
    rows += timed(make, {"plain": 1.0, "highway": 2.0}, 10, machine=timed_on)
    assert set(results_of(make, rows).costs()["ratio"].dropna()) == ratios


def test_without_training_the_answer_is_the_cost(make: Make) -> None:
    rows = timed(make, {"plain": 1.0, "highway": 2.0, "residual": 1.1}, 4)
    (row,) = printed(results_of(make, rows))
    assert row["use"] == NOT_MEASURED
    assert row["forward-backward step ÷ plain's"] == "residual 1.10 [1.10, 1.10] to highway 2.00 [2.00, 2.00]"
    assert row["how sure"] == "not trained for a verdict: only cost is known"


def test_no_sentence_says_ahead_or_below_without_an_interval(results: Results) -> None:
    for row in printed(results):
        if row["how sure"].startswith((AHEAD, TIED)):
            pattern = r"(ahead: |tied: \S+'s )loss −?[\d.]+ % \[−?[\d.]+, −?[\d.]+\] below that of \S+, \d+ seeds.*"
            assert re.fullmatch(pattern, row["how sure"])


def test_a_cell_of_the_matrix_says_what_its_colour_shows(make: Make) -> None:
    losses = {("plain", 10): [0.2] * 5, ("plain", 20): [2.0] * 4 + [None], ("highway", 10): spread(0.02)}
    (matrix,) = matrices(results_of(make, ladder(make, losses)))
    assert matrix.depths == (10, 20)
    cells = {(block, depth): cell for block, _, row in matrix.rows for depth, cell in zip((10, 20), row, strict=True)}
    assert cells["highway", 10].lines[:3] == ("trains 5/5", "best", "loss 0.0202")
    assert cells["highway", 10].lines[3].startswith("test 9")
    assert cells["plain", 20].lines[:3] == ("fails 0/5", "loss 2.00", "1 diverged")
    assert cells["highway", 20].lines == ("not measured",)
    colours = {key: cell.colour for key, cell in cells.items()}
    assert colours == {
        ("plain", 10): "trains-0",
        ("plain", 20): "fails",
        ("highway", 10): "trains-4",
        ("highway", 20): "none",
    }


def test_a_depth_that_only_some_have_reached_gives_no_finding_on_all(make: Make) -> None:
    losses = {(block, 10): spread(0.02) for block in ("residual", "highway", "pre-norm")}
    losses |= {("plain", 10): [2.0] * 5, ("residual", 20): [2.0] * 5, ("highway", 20): [0.02] * 3}
    results = results_of(make, ladder(make, losses))
    left = "2 connections that trained at the depth before were not judged there"
    first = "dense on digits: no connection that was judged trains beyond depth 10"
    assert matrices(results)[0].title == f"{first}; {left}"
    found = {answer.depths: answer for answer in results.answer() if answer.verdict != NOT_MEASURED}
    assert (found[10,].not_judged, found[20,].not_judged) == (0, 2)
    assert found[20,].reason.endswith("; not judged here, though they train at the depth before: highway and pre-norm")
    losses["highway", 20] = spread(0.02)
    (picture,) = loss_by_depth(results_of(make, ladder(make, losses)))
    assert "highway is the only one of 2 judged that trains" in picture.title
    for block in ("highway", "pre-norm"):
        losses[block, 20] = [2.0] * 5
    results = results_of(make, ladder(make, losses))
    assert matrices(results)[0].title == "dense on digits: no connection trains beyond depth 10"
    assert not [answer for answer in results.answer() if answer.not_judged]


def test_the_matrix_says_no_block_trains_only_of_several(make: Make) -> None:
    (alone,) = matrices(results_of(make, ladder(make, {("residual", 10): [2.0] * 5})))
    assert alone.title == "dense on digits: residual, the only connection tried, does not train at any depth tried"
    (two,) = matrices(results_of(make, ladder(make, {("residual", 10): [2.0] * 5, ("plain", 10): [2.0] * 5})))
    assert two.title == "dense on digits: no connection trains at any depth tried"


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

    titles = [matrix.title for matrix in matrices(results)]
    titles += [picture.title for draw in (loss_by_depth, quality_against_time) for picture in draw(results)]
    fails = {cell["block"] for _, part in results.contests() for cell in part.to_dict("records") if not cell["k"]}
    assert "plain" in fails
    for title in titles:
        assert not re.search(r"(than|against|below|times|one of|next of those that train is) plain\b", title)
