"""The speed of every block over commits, from the committed points of asv."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pandas as pd

from docs.pages.committed import NotMeasured
from highway_bench.history.files import read_results
from highway_bench.history.lines import lines_of
from highway_bench.history.paths import Paths
from highway_bench.history.suite.series import SERIES


def ratios(folder: Path) -> pd.DataFrame:
    """One row per machine, block and commit, oldest first: a step's time over the yard-stick's. A machine whose name
    others had is left out. Raises ``NotMeasured`` without points."""
    every = sorted(read_results(folder), key=lambda one: (one.machine, one.data["date"]))
    records = [
        {"machine": machine, **of.cell._asdict(), "commit": commit, "ratio": point.value}
        for machine, own in groupby((one for one in every if one.is_told_apart), key=lambda one: one.machine)
        for of, line in lines_of(list(own), Paths.of(Path()).suite(), {}, {}).items()
        for commit, point in line
        if of.series == SERIES[0]
    ]
    if not records:
        raise NotMeasured("nox -s history -- COMMIT")
    return pd.DataFrame(records)
