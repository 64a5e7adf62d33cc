"""The Python API: everything that the command line does, in a few lines. Commands only call these functions."""

from highway_bench.api.catalogue import SECTIONS, catalogue
from highway_bench.api.describe import Layer, NetworkSummary, describe
from highway_bench.api.plugins import load_plugins
from highway_bench.api.progress import showing_progress
from highway_bench.api.running import Ran, dry_run, measure, run
from highway_bench.api.selection import Words, selected

__all__ = [
    "SECTIONS",
    "Layer",
    "NetworkSummary",
    "Ran",
    "Words",
    "catalogue",
    "describe",
    "dry_run",
    "load_plugins",
    "measure",
    "run",
    "selected",
    "showing_progress",
]
