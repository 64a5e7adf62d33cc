"""Running: measures a profile in one call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Unpack

import pandas as pd

from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress_bar import showing_progress, stderr_console
from highway_bench.execution.rerun import FAILED
from highway_bench.plan.plan import AnyStore, Plan
from highway_bench.plan.profiles import Profile
from highway_bench.plan.selection import OneOrMore, Selection, SelectionOptions


def run(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    store: AnyStore | None = None,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    rerun: str = FAILED,
    strict_source: bool = False,
    shard: str | None = None,
    progress: bool = False,
    **words: Unpack[SelectionOptions],
) -> pd.DataFrame:
    """Measure a profile, narrowed or changed by ``words``, and return the rows of all its cells, one metric per row.

    ``words`` are the options of ``Selection``: block, family, depth, width, match, …, each one value or several.
    ``store`` is the SQLite file for the rows: cells that it has are not measured again, except those of ``rerun``:
    ``failed``, ``all``, or a pattern of their names; with ``strict_source`` also those whose rows are of another source
    than today's. Without a store nothing is stored. ``plugins`` are modules, or
    ``.py`` files, that register blocks, families, tasks or data sets. ``engine`` decides where cells run: the name of
    an engine, or an engine. ``shard`` ("3/8") measures one of several parts of the cells. A failure is a row, not an
    exception.

    In a script, call it under ``if __name__ == "__main__":``, because worker processes import the script. Raises
    ``BadInput`` for an impossible selection, before anything is measured, and ``NothingMeasured`` where no cell is
    left.

    >>> rows = hb.run("memory", profile="smoke", block=["plain", "highway"], family="dense")
    """
    plan = Plan.of(profile, Selection.of(tasks, **words), plugins)
    plan = plan if shard is None else plan.shard(shard)
    for line in plan.remarks:
        stderr_console().print(line, highlight=False, markup=False)
    with showing_progress() if progress else nullcontext() as on_event:
        return plan.run(
            store, engine=engine, workers=workers, rerun=rerun, strict_source=strict_source, on_event=on_event
        ).rows
