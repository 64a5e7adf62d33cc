"""Running: a profile measured in one call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Unpack

import pandas as pd

from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress_bar import showing_progress
from highway_bench.plan.plan import AnyStore, Plan
from highway_bench.plan.profiles import Profile
from highway_bench.plan.selection import OneOrMore, Selection, Words


def run(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    store: AnyStore | None = None,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    resume: bool = True,
    progress: bool = False,
    **words: Unpack[Words],
) -> pd.DataFrame:
    """Measure a profile, narrowed or changed by ``words``; the rows of all its cells, one metric a row.

    ``words`` are the options of ``Selection``: block, family, depth, width, match, …, each one value or several.
    ``store`` is the SQLite file to keep the rows in: what it has already is not measured again; without one nothing is
    kept. ``plugins`` are modules, or ``.py`` files, that register blocks and the like. ``engine`` says where cells run:
    the name of an engine, or one of your own. A failure is a row, not an exception.

    In a script, call it under ``if __name__ == "__main__":``, for worker processes import the script. Raises
    ``BadInput`` for what cannot be, before anything is measured, and ``NothingMeasured`` where no cell is left.

    >>> rows = hb.run("memory", profile="smoke", block=["plain", "highway"], family="dense")
    """
    plan = Plan.of(profile, Selection.of(tasks, **words), plugins)
    with showing_progress() if progress else nullcontext() as on_event:
        return plan.run(store, engine=engine, workers=workers, resume=resume, on_event=on_event).rows
