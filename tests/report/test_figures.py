"""Figures: what is drawn, the same bytes every time, words for those who cannot see them."""

from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any, Literal

import pytest
from matplotlib.figure import Figure

from highway_bench.report.figures import NothingToShow, every_figure, svg_text
from highway_bench.report.figures.drawing import DOTS_BELOW, reference_losses, seed_dots, some_diverged
from highway_bench.report.figures.layer_bytes import bytes_per_layer
from highway_bench.report.figures.loss_depth import loss_by_depth
from highway_bench.report.figures.quality import quality_against_time
from highway_bench.report.figures.step_time import step_time_ratio
from highway_bench.report.figures.success_rate import success_rate
from highway_bench.report.gaps import not_measured
from highway_bench.report.results import Results
from highway_bench.report.style import KNOWN, Style, styles

Make = dict[str, Callable[..., Any]]
SVG = "{http://www.w3.org/2000/svg}"


EVERY = {kind.name: kind.draw for kind in every_figure()}


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_is_drawn_with_units_title_and_alt_text(name: str, results: Results) -> None:
    for picture in EVERY[name](results):
        assert isinstance(picture.figure, Figure)
        assert picture.title
        assert len(picture.alt) > 40
        axes = [panel for panel in picture.figure.axes if panel.get_visible()]
        assert axes
        words = [text.get_text() for panel in axes for text in (panel.xaxis.label, panel.yaxis.label)]
        words += [picture.figure.get_supxlabel(), picture.figure.get_supylabel()]
        assert any(words)
        root = ET.fromstring(svg_text(picture))
        assert root.get("role") == "img"
        assert root.find(f"{SVG}title") is not None
        description = root.find(f"{SVG}desc")
        assert description is not None
        assert description.text == picture.alt


def test_figures_are_the_same_bytes_every_time(make: Make) -> None:
    first, second = (make["frame"](make["whole"](("plain", "highway"), families=("dense",))) for _ in range(2))
    for draw in (step_time_ratio, success_rate):
        assert [svg_text(picture) for picture in draw(Results(first))] == [
            svg_text(picture) for picture in draw(Results(second))
        ]


def test_svg_has_no_date_and_its_ids_are_its_own(results: Results) -> None:
    texts = {picture.name: svg_text(picture) for picture in success_rate(results)}
    assert len(texts) == 2
    for name, text in texts.items():
        assert not re.search(r"\d{4}-\d\d-\d\dT|<metadata|<!--", text)
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert all(one.startswith(f"{name}-") for one in ids)
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert {a or b for a, b in used} <= set(ids)


def test_failures_and_divergence_are_drawn(results: Results) -> None:
    (timed,) = step_time_ratio(results)
    assert "bilstm, depth 4, post-norm: timeout" in timed.alt
    (panel,) = timed.figure.axes
    assert any(line.get_marker() == "x" for line in panel.lines)
    legend = {text.get_text() for text in timed.figure.legends[0].get_texts()}
    assert legend >= {"no ratio: failed or one process", "highway"}


def test_seeds_that_diverge_are_counted_at_their_depth(make: Make) -> None:
    rows = []
    for depth, loss in ((10, 0.1), (20, None)):
        for seed in range(5):
            base = make["cell"](
                "trainability", "plain", "dense", depth, dataset="digits", recipe=make["ladder"], seed=seed
            )
            rows += make["training"](base, loss, rate=0.1)
    (picture,) = loss_by_depth(Results(make["frame"](rows)))
    assert "plain at depth 20: diverged" in picture.alt
    assert "× 5 of 5" in {text.get_text() for text in picture.figure.axes[0].texts}


@pytest.mark.parametrize(
    ("losses", "notes", "dots"),
    [((0.1, 0.1, 0.1, 0.2, 5e4), ["↑ 50,000"], 5), ((0.1, None, None), ["× 2 of 3"], 1), ((0.1, 0.2, 0.1), [], 3)],
)
def test_losses_above_the_axis_are_written_and_a_lone_seed_is_drawn(
    make: Make, losses: tuple[float | None, ...], notes: list[str], dots: int
) -> None:
    base = make["cell"]("trainability", "highway", "dense", 10, dataset="digits", recipe=make["ladder"], seed=0)
    rows = make["training"](base, 0.1, rate=0.1)
    for seed, loss in enumerate(losses):
        base = make["cell"]("trainability", "plain", "dense", 10, dataset="digits", recipe=make["ladder"], seed=seed)
        rows += make["training"](base, loss, rate=0.1)
    (picture,) = loss_by_depth(Results(make["frame"](rows)))
    (axes,) = picture.figure.axes
    assert axes.get_ylim()[1] < 20 * math.log(10)
    assert [text.get_text() for text in axes.texts if text.get_text()[0] in "↑×"] == notes
    assert ("↑" in picture.caption) == any("↑" in note for note in notes)
    assert sum(len(list(line.get_xdata())) for line in axes.lines if line.get_marker() == ".") == dots
    assert "a seed" in {text.get_text() for text in picture.figure.legends[0].get_texts()}


def test_panels_of_success_have_starts_in_a_second_line_and_counts_with_their_seeds(make: Make) -> None:
    rows = []
    for seed in range(3):
        base = make["cell"]("trainability", "plain", "dense", 10, dataset="digits", recipe=make["ladder"], seed=seed)
        rows += make["training"](base | {"family_options": '{"init": "depth-aware"}'}, 0.1, rate=0.1)
    (picture,) = success_rate(Results(make["frame"](rows)))
    (axes,) = picture.figure.axes
    assert axes.get_title(loc="left") == "plain\ndepth-aware"
    assert "3/3" in {text.get_text() for text in axes.texts}


def test_titles_state_the_finding(make: Make) -> None:
    rows = make["memory"](make["cell"]("memory", "plain", "dense", 4), 100.0)
    rows += make["memory"](make["cell"]("memory", "highway", "dense", 4), 150.0)
    (picture,) = bytes_per_layer(Results(make["frame"](rows)))
    assert picture.title == "Bytes per layer: 100 B to 150 B"
    assert "dense, highway: 150 B per layer" in picture.alt


def test_a_title_names_the_ends_of_the_ratios_that_are_drawn_and_no_mean_of_them(make: Make) -> None:
    rows = []
    for family, highway in (("dense", 0.86), ("conv", 1.25)):
        for block, times in (("plain", 1.0), ("highway", highway)):
            base = make["cell"]("throughput", block, family, 4, phase="forward", mode="compile")
            rows += make["timing"](base, [times] * 8, [1.0] * 8, 4)
            rows += make["memory"](make["cell"]("memory", block, family, 4), 100.0 * times)
    (picture,) = step_time_ratio(Results(make["frame"](rows)))
    assert picture.title == (
        "forward, compile, 1 thread: step ÷ plain's 0.860 [0.860, 0.860] (highway, dense, depth 4) "
        "to 1.25 [1.25, 1.25] (highway, conv, depth 4)"
    )


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_without_data_is_not_drawn(name: str, make: Make) -> None:
    base = make["cell"]("throughput", "plain", "dense", 4, phase="forward")
    with pytest.raises(NothingToShow):
        EVERY[name](Results(make["frame"]([base | {"metric": "step_time", "status": "oom", "message": "no memory"}])))


def test_many_families_go_into_several_pictures(make: Make) -> None:
    rows = []
    for depth in range(1, 31):
        for block in ("plain", "highway"):
            base = make["cell"]("throughput", block, "dense", depth, phase="forward")
            rows += make["timing"](base, [1.0, 1.1, 1.0] * 4)
    assert [picture.name for picture in step_time_ratio(Results(make["frame"](rows)))] == [
        "step-time-1", "step-time-2", "step-time-3"]  # fmt: skip


def test_a_place_s_name_is_written_in_full(make: Make) -> None:
    rows = []
    for batch, width in itertools.product((16, 64), (64, 128)):
        for block in ("plain", "highway"):
            base = make["cell"](
                "throughput", block, "attention", 4, phase="forward", batch_size=batch, nominal_width=width, seq_len=8
            )
            rows += make["timing"](base, [1.0, 1.1, 1.0] * 4)
    (picture,) = step_time_ratio(Results(make["frame"](rows)))
    label = picture.figure.axes[0].get_yticklabels()[0].get_text()
    assert label.split("\n") == ["attention, width\xa064,", "batch\xa016"]


def test_every_block_has_a_style_of_its_own_that_does_not_depend_on_the_others() -> None:
    others = [f"my-gate-{number}" for number in range(40)]
    every = styles([*KNOWN, *others])
    assert {name: every[name] for name in KNOWN} == KNOWN
    for first, second in itertools.combinations(every.values(), 2):
        assert (first.colour, first.marker) != (second.colour, second.marker)
    assert styles(["plain", "my-gate-3"])["my-gate-3"] == styles(["residual", "my-gate-3"])["my-gate-3"]
    assert next(iter(styles(["zeta", "plain"]))) == "plain"


def test_too_few_seeds_are_never_a_finding(make: Make) -> None:
    rows = make["whole"](("plain", "highway"), 2, ("dense",))
    (picture,) = success_rate(Results(make["frame"](rows)))
    assert picture.title == "dense: not enough seeds for a verdict at any depth"
    (picture,) = loss_by_depth(Results(make["frame"](rows)))
    assert picture.title == "dense: final training loss by depth"
    (picture,) = quality_against_time(Results(make["frame"](rows)))
    assert picture.title.endswith("depth 50: nothing trains")
    (lacking,) = [line for line in not_measured(Results(make["frame"](rows))) if "10 seeds" in line]
    assert lacking == "dense on mnist-5k: 10 seeds. 2 seeds give no verdict."


def test_a_title_names_only_ratios_with_an_interval(make: Make) -> None:
    def steps(block: str, processes: int) -> list[dict[str, Any]]:
        base = make["cell"]("throughput", block, "dense", 4, phase="forward")
        return list(make["timing"](base, [2.0 if block == "highway" else 1.0] * 8, [1.0] * 8, processes))

    alone = [*steps("plain", 4), *steps("residual", 1)]
    with pytest.raises(NothingToShow, match="several processes"):
        step_time_ratio(Results(make["frame"](alone)))
    (picture,) = step_time_ratio(Results(make["frame"]([*alone, *steps("highway", 4)])))
    assert picture.title == "forward, eager, 1 thread: step ÷ plain's 2.00 [2.00, 2.00] (highway, dense, depth 4)"
    assert "residual: one process" in picture.alt


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


@pytest.mark.parametrize("along", ["x", "y"])
def test_chance_and_threshold_are_labelled_with_their_numbers(along: Literal["x", "y"]) -> None:
    axes = Figure().subplots()
    reference_losses(axes, 2.302585, 0.2302585, along=along)
    assert [text.get_text() for text in axes.texts] == ["chance 2.30", "threshold 0.230"]
    alone = Figure().subplots()
    reference_losses(alone, 2.302585, along=along)
    assert [text.get_text() for text in alone.texts] == ["chance 2.30"]
    unknown = Figure().subplots()
    reference_losses(unknown, math.nan, 0.0, along=along)
    assert not unknown.texts
    reference_losses(unknown, 2.302585, 0.2302585, along=along, named=False)
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
