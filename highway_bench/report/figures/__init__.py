"""Figures, one kind per module: each is a function of ``Results`` that is registered with ``register_figure``."""

from highway_bench.report.figures.base import (
    Draw,
    FigureKind,
    NothingToShow,
    Picture,
    every_figure,
    figures,
    register_figure,
)
from highway_bench.report.figures.svg import svg_text

__all__ = [
    "Draw",
    "FigureKind",
    "NothingToShow",
    "Picture",
    "every_figure",
    "figures",
    "register_figure",
    "svg_text",
]
