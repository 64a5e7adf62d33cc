"""Figures, one kind per module: a function of an ``Axes`` and one panel's rows, and one from results to panels."""

from highway_bench.report.figures.base import (
    FigureKind,
    NothingToShow,
    Picture,
    every_figure,
    figures,
    svg_text,
)

__all__ = [
    "FigureKind",
    "NothingToShow",
    "Picture",
    "every_figure",
    "figures",
    "svg_text",
]
