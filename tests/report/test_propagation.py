"""Frames and figure of the propagation task, against rows worked out by hand."""

import json
import math

import pytest

from highway_bench.frames.results import Results
from highway_bench.report.figures import figures
from tests.rows import cell, frame_of, metric, start

STEPS = {"gain": 1.0, "steps": 5, "rate": 0.01, "optimiser": "sgd"}


def starts(
    changes,
    *,
    gain=1.0,
    depth=10,
    family="dense",
    **values,
):
    """A block's changes a layer, one a seed."""
    rows = []
    for block, by_seed in changes.items():
        for seed, change in enumerate(by_seed):
            base = cell(
                "propagation", block, family, depth, recipe={"gain": gain}, seed=seed, dtype="float64", **values
            )
            rows += start(base, change, mean_t=0.1 if block == "highway" else None)
    return rows


def test_verdicts_are_those_of_most_seeds_with_their_layers():
    frame = frame_of(starts({"plain": [0.5, 0.5, 0.6, 0.9, 0.9], "highway": [1.0] * 5, "residual": [1.7, 1.8, 2.0]}))
    table = Results(frame).propagation().set_index("block")
    plain, residual = table.loc["plain"], table.loc["residual"]
    assert list(table.index) == ["plain", "highway", "residual"]
    assert (plain["signal"], plain["signal_agree"], plain["n"]) == ("vanishes", 3, 5)
    assert (plain["signal_at"], plain["signal_low"], plain["signal_high"]) == (7, 7, 10)
    assert (plain["gradient_at"], plain["gradient_low"], plain["gradient_high"]) == (3, 0, 3)
    assert (residual["gradient"], residual["gradient_agree"]) == ("explodes", 3)
    assert residual["gradient_ratio"] == pytest.approx(1.8**10)
    assert residual["gradient_ratio_high"] == pytest.approx(2.0**10)
    assert table.loc["highway", "signal"] == table.loc["highway", "gradient"] == "in range"
    assert math.isnan(table.loc["plain", "gate_mean"])


def test_as_many_seeds_each_way_are_mixed():
    row = Results(frame_of(starts({"plain": [0.5, 1.0]}))).propagation().iloc[0]
    assert (row["signal"], row["gradient"], row["signal_agree"]) == ("mixed", "mixed", 0)
    assert math.isnan(row["signal_at"])


def first_steps(
    block,
    moved,
    still,
    *,
    status="ok",
    seed=0,
):
    base = cell("propagation", block, "dense", len(moved), dataset="digits", recipe=STEPS, seed=seed)
    rows = start(base, 1.0)
    base = base | {"status": status}
    values = still if status == "ok" else (None, None, None)
    rows += [
        metric(base, f"still_{name}", value, "layer", "")
        for name, value in zip(("layers", "first", "last"), values, strict=True)
    ]
    return rows + [
        metric(base, "update", value if status == "ok" else None, "1", "", axis="layer", index=float(layer))
        for layer, value in enumerate(moved, start=1)
    ]


def test_which_layers_stand_still():
    rows = first_steps("plain", [1e-6, 1e-5, 1e-2], (2, 1, 2))
    rows += first_steps("plain", [3e-6, 1e-5, 3e-2], (2, 1, 2), seed=1)
    rows += first_steps("highway", [1e-3, 1e-3, 1e-3], (0, None, None))
    rows += first_steps("residual", [1e-3, 1e-3, 1e-3], (0, None, None), status="diverged")
    frame = frame_of(rows)
    table = Results(frame).first_steps().set_index("block")
    assert table.loc["plain", "update_least"] == pytest.approx(2e-6)
    assert table.loc["plain", "update_most"] == pytest.approx(2e-2)
    assert (table.loc["plain", "n"], table.loc["residual", "diverged"], table.loc["plain", "steps"]) == (2, 1, 5)


def test_cells_that_failed_have_their_status_for_a_verdict():
    base = cell("propagation", "plain", "dense", 10, recipe={"gain": 1.0})
    failed = base | {"metric": "gradient_ratio", "status": "oom", "message": "no memory", "value": None}
    frame = frame_of([failed, *starts({"highway": [1.0]})])
    table = Results(frame).propagation().set_index("block")
    assert (table.loc["plain", "signal"], table.loc["plain", "n"]) == ("oom", 0)


def test_sizes_by_layer_are_relative_to_where_they_start():
    rows = [row | {"value": 7 * row["value"]} if row["axis"] else row for row in starts({"plain": [0.5, 0.25]})]
    frame = frame_of(rows)
    signal, gradient = (
        Results(frame).layer_sizes("activation"),
        Results(frame).layer_sizes("gradient").set_index("layer"),
    )
    assert list(signal["layer"]) == list(range(11))
    assert list(signal.loc[1, ["low", "middle", "high", "n"]]) == [0.25, 0.375, 0.5, 2]
    assert gradient.loc[10, "middle"] == 1.0
    assert gradient.loc[8, "low"] == 0.25**2


def test_the_figure_has_a_pair_of_panels_for_each_family_at_its_greatest_depth():
    rows = starts({"plain": [0.5] * 3, "highway": [0.99, 1.0, 1.01]})
    rows += starts({"plain": [1.0] * 3}, depth=4) + starts({"plain": [3.0]}, gain=2.0)
    rows += starts({"plain": [1.0], "highway": [1.0]}, family="conv")
    panels = figures.get("signal-by-layer").panels(Results(frame_of(rows)))
    assert [panel.title for panel in panels] == ["dense, 10 layers"] * 2 + ["conv, 10 layers"] * 2
    assert "plain: 1.00 to 0.000977" in panels[0].described


def test_starts_with_other_recipes_are_separate():
    """Another gain is another cell, because it is in the recipe."""
    frame = frame_of(starts({"plain": [1.0]}) + starts({"plain": [2.0]}, gain=2.0))
    table = Results(frame).propagation()
    assert list(table["gain"]) == [1.0, 2.0]
    assert [json.loads(text)["gain"] for text in table["recipe"]] == [1.0, 2.0]
