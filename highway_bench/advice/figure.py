"""The figure of an advice: how far each finalist's loss is from the best, with its interval."""

from __future__ import annotations

import math

from highway_bench.advice.answer import CONFIDENCE, Advice, interval, percent
from highway_bench.advice.finals import EQUAL
from highway_bench.report.figures.base import Picture, head, in_lines, panels, settings
from highway_bench.report.figures.drawing import point_with_interval
from highway_bench.report.style import styles

ROW = 0.42  # inches a finalist
BEYOND = 4.0  # the axis ends at this multiple of the largest difference, so that a wide interval hides no other


def losses_figure(advice: Advice) -> Picture | None:
    """One row for each finalist that did not diverge, the best first; ``None`` where there is nothing to compare."""
    best = advice.quality.best
    if best is None or not advice.quality.behind:
        return None
    names = [best, *(one.name for one in advice.quality.behind)]
    style = styles(one.block for one in names)
    described = [f"{best}: the lowest loss"]
    right = BEYOND * max(10.0, *(100 * one.difference for one in advice.quality.behind))
    is_cut = any(max(-one.low, one.high) > right / 100 for one in advice.quality.behind)
    with settings():
        figure, (axes,) = panels(1, 1, max(1.2, ROW * len(names)))
        axes.axvline(0, color="#555555", linewidth=0.8)
        axes.axvspan(-100 * EQUAL, 100 * EQUAL, color="#e3e3e3", zorder=0)
        point_with_interval(axes, 0.0, 0.0, style[best.block])
        for row, one in enumerate(advice.quality.behind, start=1):
            at, low, high = (100 * value for value in (one.difference, one.low, one.high))
            bounds = (max(low, -right), min(high, right)) if math.isfinite(low) else None
            point_with_interval(axes, at, float(row), style[one.name.block], bounds, along="x", filled=one.worse)
            described.append(f"{one.name}: {percent(one.difference)} {interval(one)}")
        axes.set_yticks(range(len(names)), [in_lines(str(one)) for one in names], linespacing=1.0)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(False, axis="y")
        if is_cut:
            axes.set_xlim(max(axes.get_xlim()[0], -right), right)
        axes.set_xlabel("final loss against the best, %")
        head(figure, advice.decision)
    caption = (
        f"Mean relative difference of final losses over {advice.quality.seeds} paired seeds, with intervals of "
        f"{CONFIDENCE} for all comparisons together. Filled: behind. Open: may be the best. "
        f"Grey: within {100 * EQUAL:g} %.{' An interval that meets the edge goes on.' if is_cut else ''}"
    )
    return Picture("finals", advice.decision, f"{'; '.join(described)}.", caption, figure)
