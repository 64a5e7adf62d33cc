"""Figures: what is drawn, the same bytes every time, words for those who cannot see them."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from highway_bench.frames.results import Results
from highway_bench.report.figures import NothingToShow, every_figure, figures, svg_text
from highway_bench.report.figures.cost_heat import draw_ratios
from highway_bench.report.figures.quality import front
from highway_bench.report.style import KNOWN, styles
from tests.rows import cell, frame_of, memory, timed, trained, whole

SVG = "{http://www.w3.org/2000/svg}"
every = pytest.mark.parametrize("kind", every_figure(), ids=lambda kind: kind.name)


@pytest.fixture(scope="module")
def measured():
    """A whole run whose training steps were timed in turn."""
    costs = {"plain": 1.0, "pre-norm": 2.0, "highway": 3.0}
    rows = whole(tuple(costs), families=("dense", "conv"))
    for depth in (10, 20, 50, 100):
        rows += timed(costs, depth)
        for block, cost in costs.items():
            rows += memory(cell("memory", block, "dense", depth, seed=7), 100.0 * cost)
    return Results(frame_of(rows))


@every
def test_a_figure_without_data_is_not_drawn(kind):
    base = cell("throughput", "plain", "dense", 4, phase="forward")
    failed = base | {"metric": "step_time", "status": "oom", "message": "no memory"}
    with pytest.raises(NothingToShow):
        kind.draw(Results(frame_of([failed])))


def test_figures_are_the_same_bytes_every_time_and_their_ids_are_their_own(results):
    one, again = (
        {picture.name: svg_text(picture) for picture in figures.get("success-by-depth").draw(results)} for _ in range(2)
    )
    assert one == again
    assert list(one) == ["success-by-depth-1", "success-by-depth-2"]
    for name, text in one.items():
        assert not re.search(r"\d{4}-\d\d-\d\dT|<metadata|<!--", text)
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids))
        assert all(one.startswith(f"{name}-") for one in ids)
        used = re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text)
        assert {a or b for a, b in used} <= set(ids)


def test_seeds_that_diverge_are_counted_and_losses_above_the_axis_are_marked():
    rows = trained({("plain", 10): [0.1] * 4 + [5e4], ("plain", 20): [None] * 5, ("plain", 40): [5e4] * 5})
    (panel,) = figures.get("loss-by-depth").panels(Results(frame_of(rows)))
    assert "plain at depth 20: diverged" in panel.described
    axes = Figure().subplots()
    panel.draw(axes)
    assert axes.get_ylim()[1] < 20 * math.log(10)
    assert {"5", f"chance {math.log(10):.2f}", "threshold 0.230"} <= {text.get_text() for text in axes.texts}
    assert [len(list(line.get_xdata())) for line in axes.lines if line.get_marker() == "^"] == [1]


def test_a_heat_table_has_a_number_with_its_interval_a_cell():
    cells = [("dense", 4, "pre-norm", 1.0, 1.0, 1.0), ("dense", 4, "highway", 1.5, 1.4, 1.55)]
    names = ["kind", "depth", "connection", "step_ratio", "step_ratio_low", "step_ratio_high"]
    axes = Figure().subplots()
    draw_ratios(axes, pd.DataFrame(cells, columns=names), "step_ratio")
    assert [text.get_text() for text in axes.texts] == ["1.00", "1.50\n±0.10"]


def test_the_front_is_of_what_no_faster_connection_beats():
    rows = [{"step_ratio": step, "held_out": loss} for step, loss in ((3.0, 0.2), (1.0, 0.3), (2.0, 0.4), (4.0, 0.25))]
    assert [row["step_ratio"] for row in front(rows)] == [1.0, 3.0]


def test_every_block_has_a_style_of_its_own_that_does_not_depend_on_the_others():
    others = [f"my-gate-{number}" for number in range(40)]
    every = styles([*KNOWN, *others])
    assert {name: every[name] for name in KNOWN} == KNOWN
    for first, second in itertools.combinations(every.values(), 2):
        assert (first.colour, first.marker) != (second.colour, second.marker)
    assert styles(["plain", "my-gate-3"])["my-gate-3"] == styles(["residual", "my-gate-3"])["my-gate-3"]
    assert next(iter(styles(["zeta", "plain"]))) == "plain"


@every
def test_every_figure_is_drawn_with_units_and_alt_text(kind, measured):
    before = dict(mpl.rcParams)
    pictures = kind.draw(measured)
    assert dict(mpl.rcParams) == before
    assert len({picture.name for picture in pictures}) == len(pictures) > 0
    for picture in pictures:
        axes = [panel for panel in picture.figure.axes if panel.get_visible()]
        assert any(text.get_text() for panel in axes for text in (panel.xaxis.label, panel.yaxis.label))
        root = ET.fromstring(svg_text(picture))
        assert root.get("role") == "img"
        assert root.findtext(f"{SVG}desc") == picture.alt
