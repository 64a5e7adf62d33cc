"""Listing: what is registered, as small frames."""

from __future__ import annotations

import pandas as pd

from highway_bench.catalogue import catalogue


def list_blocks() -> pd.DataFrame:
    """The connections by name, with equation, what it is, source and group."""
    return _frame("blocks", "equation", "summary", "source", "group")


def list_families() -> pd.DataFrame:
    """The kinds of layer by name, with the transform H, what it takes, and the source."""
    return _frame("families", "transform", "kind", "summary", "source")


def list_tasks() -> pd.DataFrame:
    """What is measured, by name, with the metrics and the words of recipes."""
    tasks = _frame("tasks", "summary", "metrics", "words")
    tasks["metrics"] = [", ".join(one["name"] for one in metrics) for metrics in tasks["metrics"]]
    tasks["words"] = tasks["words"].map(", ".join)
    return tasks


def list_datasets() -> pd.DataFrame:
    """The data sets by name, with the source, and what is missing to load them."""
    return _frame("datasets", "summary", "source", "missing")


def _frame(section: str, *columns: str) -> pd.DataFrame:
    entries = pd.DataFrame(catalogue(section)).set_index("name")
    return entries[list(columns)]
