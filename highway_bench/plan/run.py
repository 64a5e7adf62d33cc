"""Running: measures a profile in one call."""

from __future__ import annotations

import json
import math
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
from highway_bench.tasks import tasks
from highway_bench.tasks.trainability import Trainability


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
    trials: bool = False,
    progress: bool = False,
    **words: Unpack[SelectionOptions],
) -> pd.DataFrame:
    """Measure a profile, narrowed or changed by ``words``, and return the rows of its cells, one metric per row.

    The column ``purpose`` says what a training was for: ``final``, ``trial`` (of a search), or ``probe`` (too short for
    a verdict, or made to look into the network). Trials are returned with ``trials`` alone, and so are probes of a task
    and family that have finals.

    ``words`` are the options of ``Selection``: block, family, depth, width, match, …, each one value or several.
    ``store`` is the SQLite file for the rows: cells that it has are not measured again, except those of ``rerun``:
    ``failed``, ``all``, or a pattern of their names; with ``strict_source`` also those whose rows are of another source
    than today's. Without a store nothing is stored. ``plugins`` are modules, or
    ``.py`` files, that register blocks, families, tasks or data sets. ``engine`` decides where cells run: the name of
    an engine, or an engine. ``shard`` ("3/8") measures one of several parts of the cells. A failure is a row, not an
    exception.

    Raises ``BadInput`` for an impossible selection, before anything is measured, and ``NothingMeasured`` where no cell
    is left.

    >>> rows = hb.run("memory", profile="smoke", block=["plain", "highway"], family="dense")
    """
    plan = Plan.of(profile, Selection.of(tasks, **words), plugins)
    plan = plan if shard is None else plan.shard(shard)
    for line in plan.remarks:
        stderr_console().print(line, highlight=False, markup=False)
    with showing_progress() if progress else nullcontext() as on_event:
        rows = plan.run(
            store, engine=engine, workers=workers, rerun=rerun, strict_source=strict_source, on_event=on_event
        ).rows
    rows["purpose"] = purposes(rows)
    return rows if trials else finals(rows)


def purposes(rows: pd.DataFrame) -> pd.Series:
    """What the training of each row was for; empty for rows of no training."""

    def purpose(task: str, recipe: str, trial: float) -> str:
        if not isinstance(tasks.get(task), Trainability):
            return ""
        judged = task == Trainability.name and json.loads(recipe).get("verdict", True)
        return "trial" if not math.isnan(trial) else "final" if judged else "probe"

    of_cell = rows.drop_duplicates("digest").astype({"trial": float})
    found = dict(
        zip(of_cell["digest"], map(purpose, of_cell["task"], of_cell["recipe"], of_cell["trial"]), strict=True)
    )
    return rows["digest"].astype(object).map(found)


def finals(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` without trials, and without probes of a task and family that have finals."""
    final = rows["purpose"].eq("final").groupby([rows["task"], rows["family"]], observed=True).transform("any")
    return rows[rows["purpose"].ne("trial") & ~(rows["purpose"].eq("probe") & final)].reset_index(drop=True)
