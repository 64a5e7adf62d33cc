"""Figures: what is drawn, the same bytes every time, words for those who cannot see them."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from highway_bench.frames.results import Results
from highway_bench.report.figures import FigureKind, NothingToShow, every_figure, figures, svg_text
from highway_bench.report.figures.cost_heat import draw_ratios
from highway_bench.report.figures.drawing import DOTS_BELOW, reference_losses, seed_dots, some_diverged
from highway_bench.report.figures.quality import front
from highway_bench.report.style import KNOWN, Style, styles

Make = dict[str, Callable[..., Any]]
SVG = "{http://www.w3.org/2000/svg}"
every = pytest.mark.parametrize("kind", every_figure(), ids=lambda kind: kind.name)
AT_ONCE = [1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1]


@pytest.fixture(scope="module")
def measured(make: Make) -> Results:
    """A whole run whose training steps were timed in turn."""
    rows = make["whole"](("plain", "highway", "pre-norm"), families=("dense", "conv"))
    for block, times in (("plain", 0.5), ("pre-norm", 1.0), ("highway", 1.5)):
        for depth in (10, 20, 50, 100):
            base = make["cell"]("throughput", block, "dense", depth, phase="train-step")
            rows += make["timing"](base, [times * one for one in AT_ONCE], [0.5 * one for one in AT_ONCE])
            rows += make["memory"](make["cell"]("memory", block, "dense", depth, seed=7), 100.0 * times)
    return Results(make["frame"](rows))


@every
def test_every_figure_is_drawn_with_units_a_short_title_and_alt_text(kind: FigureKind, measured: Results) -> None:
    pictures = kind.draw(measured)
    assert len({picture.name for picture in pictures}) == len(pictures) > 0
    for picture in pictures:
        assert len(picture.title.split()) <= 12
        assert len(picture.alt) > 40
        axes = [panel for panel in picture.figure.axes if panel.get_visible()]
        words = [text.get_text() for panel in axes for text in (panel.xaxis.label, panel.yaxis.label)]
        assert any(words)
        root = ET.fromstring(svg_text(picture))
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title") is not None
        description = root.find(f"{SVG}desc")
        assert description is not None
        assert description.text == picture.alt


@every
def test_a_panel_is_drawn_into_the_axes_of_others_without_changing_their_style(
    kind: FigureKind, measured: Results
) -> None:
    before = dict(mpl.rcParams)
    for panel in kind.panels(measured):
        axes = Figure().subplots()
        panel.draw(axes)
        assert axes.has_data()
        assert panel.described
    assert dict(mpl.rcParams) == before


@every
def test_a_figure_without_data_is_not_drawn(kind: FigureKind, make: Make) -> None:
    base = make["cell"]("throughput", "plain", "dense", 4, phase="forward")
    failed = base | {"metric": "step_time", "status": "oom", "message": "no memory"}
    with pytest.raises(NothingToShow, match="it needs "):
        kind.draw(Results(make["frame"]([failed])))


def test_figures_are_the_same_bytes_every_time(make: Make) -> None:
    one, other = (Results(make["frame"](make["whole"](("plain", "highway"), families=("dense",)))) for _ in range(2))
    kind = figures.get("success-by-depth")
    assert list(map(svg_text, kind.draw(one))) == list(map(svg_text, kind.draw(other)))


def test_svg_has_no_date_and_its_ids_are_its_own(results: Results) -> None:
    texts = {picture.name: svg_text(picture) for picture in figures.get("success-by-depth").draw(results)}
    assert list(texts) == ["success-by-depth-1", "success-by-depth-2"]
    for name, text in texts.items():
        assert not re.search(r"\d{4}-\d\d-\d\dT|<metadata|<!--", text)
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert all(one.startswith(f"{name}-") for one in ids)
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert {a or b for a, b in used} <= set(ids)


def test_seeds_that_diverge_are_counted_and_losses_above_the_axis_are_marked(make: Make) -> None:
    rows = []
    for depth, losses in ((10, [0.1] * 4 + [5e4]), (20, [None] * 5), (40, [5e4] * 5)):
        for seed, loss in enumerate(losses):
            base = make["cell"](
                "trainability", "plain", "dense", depth, dataset="digits", recipe=make["ladder"], seed=seed
            )
            rows += make["training"](base, loss, rate=0.1)
    (panel,) = figures.get("loss-by-depth").panels(Results(make["frame"](rows)))
    assert "plain at depth 20: diverged" in panel.described
    axes = Figure().subplots()
    panel.draw(axes)
    assert axes.get_ylim()[1] < 20 * math.log(10)
    assert "5" in {text.get_text() for text in axes.texts}
    assert [len(list(line.get_xdata())) for line in axes.lines if line.get_marker() == "^"] == [1]


def test_panels_of_success_have_counts_with_their_seeds(make: Make) -> None:
    rows = make["whole"](("plain", "highway"), 3, ("dense",))
    panels = figures.get("success-by-depth").panels(Results(make["frame"](rows)))
    assert [panel.title for panel in panels] == ["plain", "highway"]
    axes = Figure().subplots()
    panels[0].draw(axes)
    assert "2/3" in {text.get_text() for text in axes.texts}


def test_a_heat_table_has_a_number_with_its_interval_a_cell() -> None:
    cells = [("dense", 4, "pre-norm", 1.0, 1.0, 1.0), ("dense", 4, "highway", 1.5, 1.4, 1.55)]
    names = ["kind", "depth", "connection", "step_ratio", "step_ratio_low", "step_ratio_high"]
    axes = Figure().subplots()
    draw_ratios(axes, pd.DataFrame(cells, columns=names), "step_ratio")
    assert [text.get_text() for text in axes.texts] == ["1.00", "1.50\n±0.10"]


def test_the_front_is_of_what_no_faster_connection_beats() -> None:
    rows = [{"step_ratio": step, "held_out": loss} for step, loss in ((3.0, 0.2), (1.0, 0.3), (2.0, 0.4), (4.0, 0.25))]
    assert [row["step_ratio"] for row in front(rows)] == [1.0, 3.0]


def test_every_block_has_a_style_of_its_own_that_does_not_depend_on_the_others() -> None:
    others = [f"my-gate-{number}" for number in range(40)]
    every = styles([*KNOWN, *others])
    assert {name: every[name] for name in KNOWN} == KNOWN
    for first, second in itertools.combinations(every.values(), 2):
        assert (first.colour, first.marker) != (second.colour, second.marker)
    assert styles(["plain", "my-gate-3"])["my-gate-3"] == styles(["residual", "my-gate-3"])["my-gate-3"]
    assert next(iter(styles(["zeta", "plain"]))) == "plain"


def test_two_starts_of_a_block_have_its_style() -> None:
    every = styles(["highway · published", "highway · depth-aware", "my-gate · published", "my-gate · depth-aware"])
    for block in ("highway", "my-gate"):
        first, second = (style for label, style in every.items() if label.startswith(block))
        assert (first.colour, first.marker, first.dash) == (second.colour, second.marker, second.dash)
        assert (first.filled, second.filled) == (True, False)
    assert every["highway · depth-aware"].colour == KNOWN["highway"].colour


def test_single_seeds_are_drawn_under_intervals_of_fewer_than_ten() -> None:
    style = Style("#000000", "o", "-")
    for values, dots in (([1.0, 2.0, math.inf], 2), ([1.0, math.inf], 1), ([1.0], 0), ([1.0] * DOTS_BELOW, 0)):
        axes = Figure().subplots()
        seed_dots(axes, 3.0, values, style)
        assert sum(len(list(line.get_xdata())) for line in axes.lines) == dots


def test_the_number_of_diverged_seeds_is_written_where_some_diverged() -> None:
    axes = Figure().subplots()
    some_diverged(axes, [1.0, 2.0], [0, 3], Style("#000000", "o", "-"))
    assert [text.get_text() for text in axes.texts] == ["3"]
    assert list(axes.lines[0].get_xdata()) == [2.0]


def test_chance_and_threshold_are_labelled_with_their_numbers() -> None:
    axes = Figure().subplots()
    reference_losses(axes, 2.302585, 0.2302585)
    assert [text.get_text() for text in axes.texts] == ["chance 2.30", "threshold 0.230"]
    alone = Figure().subplots()
    reference_losses(alone, 2.302585)
    assert [text.get_text() for text in alone.texts] == ["chance 2.30"]
    unknown = Figure().subplots()
    reference_losses(unknown, math.nan, 0.0)
    assert not unknown.texts
    reference_losses(unknown, 2.302585, 0.2302585, named=False)
    assert not unknown.texts
    assert len(unknown.lines) == 2


def test_names_outside_of_the_axes_hide_no_line() -> None:
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    reference_losses(axes, 2.302585, 0.2302585, side="outside")
    figure.draw_without_rendering()
    for text in axes.texts:
        box = text.get_window_extent()
        assert axes.bbox.x1 < box.x0 < box.x1 <= figure.bbox.x1
