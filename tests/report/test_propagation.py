"""Tables and figure of the propagation task, against rows worked out by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from highway_bench.report.columns import Shown
from highway_bench.report.definitions import DEFINITIONS
from highway_bench.report.figures import NothingToShow, svg_text
from highway_bench.report.figures.signal import signal_by_layer
from highway_bench.report.further_values import all_results
from highway_bench.report.results import Results
from highway_bench.report.sections import sections
from highway_bench.report.summary_tables import summary_tables

Make = dict[str, Callable[..., Any]]
STEPS = {"gain": 1.0, "steps": 5, "rate": 0.01, "optimiser": "sgd"}


def start_tables(results: Results) -> list[Shown]:
    """The tables of the section that have rows."""
    return [shown for shown in sections.get("propagation").summary(results) if shown.entries]


def starts(
    make: Make,
    changes: dict[str, list[float]],
    *,
    gain: float = 1.0,
    depth: int = 10,
    family: str = "dense",
    **values: Any,
) -> list[Any]:
    """A block's changes a layer, one a seed."""
    rows = []
    for block, by_seed in changes.items():
        for seed, change in enumerate(by_seed):
            base = make["cell"](
                "propagation", block, family, depth, recipe={"gain": gain}, seed=seed, dtype="float64", **values
            )
            rows += make["start"](base, change, mean_t=0.1 if block == "highway" else None)
    return rows


def printed(shown: Shown) -> list[dict[str, str]]:
    heads = [head.text for head in shown.heads]
    return [dict(zip(heads, row, strict=True)) for row in shown.entries]


def test_verdicts_are_those_of_most_seeds_with_their_layers(make: Make) -> None:
    frame = make["frame"](
        starts(make, {"plain": [0.5, 0.5, 0.6, 0.9, 0.9], "highway": [1.0] * 5, "residual": [1.7, 1.8, 2.0]})
    )
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
    (shown,) = start_tables(Results(frame))
    by_block = {row["block"]: row for row in printed(shown)}
    assert by_block["plain"]["forward"] == "vanishes at 7 (7–10), 3 of 5"
    assert by_block["plain"]["backward"] == "vanishes at 3 (0–3), 3 of 5"
    assert by_block["residual"]["backward"] == "explodes at 2 (1–3)"
    assert by_block["residual"]["gradient ratio"] == "357 [202, 1,020]"
    assert by_block["highway"]["gradient ratio"] == "1.00"
    assert by_block["highway"] == {
        "depth": "10",
        "block": "highway",
        "forward": "in range",
        "backward": "in range",
        "gradient ratio": "1.00",
        "gate mean": "0.100",
        "depth scale": "4.00",
        "jacobian spread": "1.50",
        "gradient correlation": "0.900",
        "seeds": "5",
    }
    assert "below 1/100 of its initial value" in shown.note
    assert shown.note.startswith("Equal params, plain's width 71, float64; medians. A size")
    assert by_block["residual"]["seeds"] == "3"


def test_as_many_seeds_each_way_are_mixed(make: Make) -> None:
    row = Results(make["frame"](starts(make, {"plain": [0.5, 1.0]}))).propagation().iloc[0]
    assert (row["signal"], row["gradient"], row["signal_agree"]) == ("mixed", "mixed", 0)
    assert math.isnan(row["signal_at"])


def test_a_singular_jacobian_shows_its_rank(make: Make) -> None:
    rows = starts(make, {"plain": [1.0]})
    rows = [row | {"value": None} if row["metric"] == "jacobian_spread" else row for row in rows]
    (shown,) = start_tables(Results(make["frame"](rows)))
    assert printed(shown)[0]["jacobian spread"] == "rank 71"


def test_gains_stand_side_by_side(make: Make) -> None:
    rows = starts(make, {"plain": [1.0] * 3, "highway": [1.0] * 3})
    rows += starts(make, {"plain": [0.5] * 3, "highway": [1.0] * 3}, gain=0.5)
    rows += starts(make, {"plain": [2.0] * 3}, gain=2.0)
    own, gains = start_tables(Results(make["frame"](rows)))
    assert len(own.entries) == 2
    assert printed(gains) == [
        {
            "family": "dense",
            "depth": "10",
            "block": "plain",
            "gain 0.5": "both vanish",
            "gain 1": "in range",
            "gain 2": "both explode",
        },
        {
            "family": "dense",
            "depth": "10",
            "block": "highway",
            "gain 0.5": "in range",
            "gain 1": "in range",
            "gain 2": "",
        },
    ]
    assert {"2.00", "0.500"} <= {row["gain"] for row in printed(whole(make["frame"](rows)))}


def whole(frame: pd.DataFrame) -> Shown:
    (table,) = (table for table in all_results(Results(frame)) if table.name == "propagation")
    return table


def first_steps(
    make: Make,
    block: str,
    moved: list[float],
    still: tuple[int, int | None, int | None],
    *,
    status: str = "ok",
    seed: int = 0,
) -> list[Any]:
    base = make["cell"]("propagation", block, "dense", len(moved), dataset="digits", recipe=STEPS, seed=seed)
    rows = make["start"](base, 1.0)
    base = base | {"status": status}
    values = still if status == "ok" else (None, None, None)
    rows += [
        make["metric"](base, f"still_{name}", value, "layer", "")
        for name, value in zip(("layers", "first", "last"), values, strict=True)
    ]
    return rows + [
        make["metric"](base, "update", value if status == "ok" else None, "1", "", axis="layer", index=float(layer))
        for layer, value in enumerate(moved, start=1)
    ]


def test_which_layers_stand_still(make: Make) -> None:
    rows = first_steps(make, "plain", [1e-6, 1e-5, 1e-2], (2, 1, 2))
    rows += first_steps(make, "plain", [3e-6, 1e-5, 3e-2], (2, 1, 2), seed=1)
    rows += first_steps(make, "highway", [1e-3, 1e-3, 1e-3], (0, None, None))
    rows += first_steps(make, "residual", [1e-3, 1e-3, 1e-3], (0, None, None), status="diverged")
    frame = make["frame"](rows)
    table = Results(frame).first_steps().set_index("block")
    assert table.loc["plain", "update_least"] == pytest.approx(2e-6)
    assert table.loc["plain", "update_most"] == pytest.approx(2e-2)
    assert (table.loc["plain", "n"], table.loc["residual", "diverged"], table.loc["plain", "steps"]) == (2, 1, 5)
    shown = {table.name: table for table in start_tables(Results(frame))}
    by_block = {row["block"]: row["layers that stand still"] for row in printed(shown["first-steps"])}
    assert by_block == {"plain": "2 of 3, from 1 to 2", "highway": "none", "residual": "–"}
    assert {row["block"] for row in printed(shown["start-1"])} == {"plain", "highway", "residual"}


def test_starts_measured_next_to_first_steps_are_not_shown_twice(make: Make) -> None:
    rows = starts(make, {"plain": [1.0]}, depth=3) + first_steps(make, "plain", [1.0, 1.0, 1.0], (0, None, None))
    tables = start_tables(Results(make["frame"](rows)))
    assert [table.name for table in tables] == ["start-1", "first-steps"]
    assert tables[0].title == "dense: signal and gradient at the start"


def test_cells_that_failed_have_their_status_for_a_verdict(make: Make) -> None:
    base = make["cell"]("propagation", "plain", "dense", 10, recipe={"gain": 1.0})
    failed = base | {"metric": "gradient_ratio", "status": "oom", "message": "no memory", "value": None}
    frame = make["frame"]([failed, *starts(make, {"highway": [1.0]})])
    table = Results(frame).propagation().set_index("block")
    assert (table.loc["plain", "signal"], table.loc["plain", "n"]) == ("oom", 0)
    by_block = {row["block"]: row for row in printed(whole(frame))}
    assert (by_block["plain"]["forward"], by_block["plain"]["status"]) == ("oom", "oom")


def test_the_summary_has_them_and_the_page_has_all(make: Make) -> None:
    frame = make["frame"](make["whole"](("plain", "highway"), 1, ("dense",)))
    names = [table.name for table in summary_tables(Results(frame))]
    assert names[-1:] == ["start-1"]
    assert len(whole(frame).entries) == 2
    speed = make["frame"](make["memory"](make["cell"]("memory", "plain", "dense", 4), 10.0))
    assert not [
        table
        for table in [*summary_tables(Results(speed)), *all_results(Results(speed))]
        if table.name.startswith("start")
    ]
    words = {word for word, _ in DEFINITIONS}
    assert {"in range, vanishes, explodes", "gain", "ξ", "shattering", "stands still"} <= words


def test_sizes_by_layer_are_relative_to_where_they_start(make: Make) -> None:
    rows = [row | {"value": 7 * row["value"]} if row["axis"] else row for row in starts(make, {"plain": [0.5, 0.25]})]
    frame = make["frame"](rows)
    signal, gradient = (
        Results(frame).layer_sizes("activation"),
        Results(frame).layer_sizes("gradient").set_index("layer"),
    )
    assert list(signal["layer"]) == list(range(11))
    assert list(signal.loc[1, ["low", "middle", "high", "n"]]) == [0.25, 0.375, 0.5, 2]
    assert gradient.loc[10, "middle"] == 1.0
    assert gradient.loc[8, "low"] == 0.25**2


def test_the_figure_states_the_verdicts_in_its_title(make: Make) -> None:
    rows = starts(make, {"plain": [0.5] * 3, "highway": [0.99, 1.0, 1.01]})
    rows += starts(make, {"plain": [1.0] * 3}, depth=4) + starts(make, {"plain": [3.0]}, gain=2.0)
    rows += starts(make, {"plain": [1.0], "highway": [1.0]}, family="conv")
    dense, conv = signal_by_layer(Results(make["frame"](rows)))
    assert dense.title == "dense, depth 10: signal vanishes under plain; gradient vanishes under plain"
    assert conv.title == "conv, depth 10: signal and gradient stay in range under every connection"
    assert "signal, plain: 1.00 at layer 0, 0.000977 at layer 10" in dense.alt
    assert "n = 3 seeds" in dense.caption
    assert [text.get_text() for text in dense.figure.legends[0].get_texts()] == ["plain", "highway"]
    for panel in dense.figure.axes:
        assert panel.get_yscale() == "log"
        assert len(panel.collections) == 2  # one band per block
    assert svg_text(dense) == svg_text(signal_by_layer(Results(make["frame"](rows)))[0])


@pytest.mark.parametrize(("factor", "end"), [(50.0, 50.0**10), (0.001, 0.001**10)])
def test_sizes_that_explode_or_vanish_are_in_view(make: Make, factor: float, end: float) -> None:
    (picture,) = signal_by_layer(Results(make["frame"](starts(make, {"residual": [factor], "plain": [1.0]}))))
    for panel in picture.figure.axes:
        low, high = panel.get_ylim()
        assert low < min(end, 0.01)
        assert high > max(end, 100)


def test_without_finite_sizes_a_block_has_no_line(make: Make) -> None:
    rows = starts(make, {"plain": [1.0]})
    rows += [row | {"value": None} if row["axis"] else row for row in starts(make, {"residual": [9.0]})]
    (picture,) = signal_by_layer(Results(make["frame"](rows)))
    assert "signal, residual: no finite size" in picture.alt
    with pytest.raises(NothingToShow):
        signal_by_layer(Results(make["frame"](make["memory"](make["cell"]("memory", "plain", "dense", 4), 10.0))))


def test_starts_with_other_recipes_are_separate(make: Make) -> None:
    """Another gain is another cell, because it is in the recipe."""
    frame = make["frame"](starts(make, {"plain": [1.0]}) + starts(make, {"plain": [2.0]}, gain=2.0))
    table = Results(frame).propagation()
    assert list(table["gain"]) == [1.0, 2.0]
    assert [json.loads(text)["gain"] for text in table["recipe"]] == [1.0, 2.0]
