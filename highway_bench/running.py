"""Running: from words to measured rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import pandas as pd
import torch

from highway_bench.cell import Cell
from highway_bench.execution.progress import Event
from highway_bench.execution.progress_bar import showing_progress
from highway_bench.execution.runner import Summary, run_cells
from highway_bench.plan.checks import check_cells, check_data
from highway_bench.plan.estimate import Estimate, estimate
from highway_bench.plan.grids import Planned, plan
from highway_bench.plan.profiles import Profile, get_profile
from highway_bench.plan.selection import OneOrMore, Words, selected
from highway_bench.plugins import load_plugins, modules_outside
from highway_bench.results.schema import FAILURES, LATER_ATTEMPT, RANK, Status
from highway_bench.results.store import Store

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Ending:
    """How one cell ended, and why."""

    cell: Cell
    status: Status
    message: str | None


@dataclass(frozen=True)
class Ran:
    """A run's rows (of all its cells, those measured before included), its summary, and what it should not show."""

    rows: pd.DataFrame
    summary: Summary
    failures: list[Ending]
    unexpected: list[Ending]


def run(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    store: AnyPath | None = None,
    plugins: Sequence[str] = (),
    workers: int | None = None,
    resume: bool = True,
    progress: bool = False,
    **words: Unpack[Words],
) -> pd.DataFrame:
    """Measure a profile, narrowed or changed by ``words``; the rows of all its cells, one metric a row.

    ``words`` are those of ``Words``: block, family, depth, width, match, …, each one value or several. ``store`` is
    the SQLite file to keep the rows in: what it has already is not measured again; without one nothing is kept.
    ``plugins`` are modules, or ``.py`` files, that register blocks and the like. A failure is a row, not an exception.

    In a script, call it under ``if __name__ == "__main__":``, for worker processes import the script. Raises
    ``BadInput`` for what cannot be, before anything is measured, and ``NothingMeasured`` where no cell is left.

    >>> rows = hb.run("memory", profile="smoke", block=["plain", "highway"], family="dense")
    """
    if progress:
        with showing_progress() as on_event:
            return measure(
                tasks,
                profile=profile,
                store=store,
                plugins=plugins,
                workers=workers,
                resume=resume,
                on_event=on_event,
                **words,
            ).rows
    return measure(tasks, profile=profile, store=store, plugins=plugins, workers=workers, resume=resume, **words).rows


def measure(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    store: AnyPath | None = None,
    plugins: Sequence[str] = (),
    workers: int | None = None,
    resume: bool = True,
    on_event: Callable[[Event], None] | None = None,
    command: Sequence[str] | None = None,
    **words: Unpack[Words],
) -> Ran:
    """As ``run``, with how every cell ended. ``on_event`` is told what happens; ``command`` is kept with the run."""
    planned, modules = planned_cells(tasks, profile, plugins, words)
    if words.get("dataset") or words.get("batch_size"):  # the profiles' own come with packages, and fit their batches
        check_data(one.cell for one in planned)
    with opened(store) as kept:
        summary = run_cells(
            [one.cell for one in planned],
            kept,
            workers=workers,
            plugins=modules,
            resume=resume,
            on_event=on_event,
            command=command,
        )
        rows = kept.frame(digest=list(summary.digests.values()))
    endings = endings_of(rows, summary)
    expected = {one.cell: {Status.OK, *one.statuses} for one in planned}
    return Ran(
        rows,
        summary,
        [ending for ending in endings if ending.status in FAILURES],
        [ending for ending in endings if ending.status not in expected.get(ending.cell, {ending.status})],
    )


def dry_run(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    store: AnyPath | None = None,
    plugins: Sequence[str] = (),
    workers: int | None = None,
    resume: bool = True,
    **words: Unpack[Words],
) -> Estimate:
    """The cells that ``run`` would measure, and roughly the time and memory that it would take. Writes nothing."""
    planned, _ = planned_cells(tasks, profile, plugins, words)
    lanes = workers or len(os.sched_getaffinity(0))
    there = store if store is not None and Path(store).exists() else None
    with opened(there, read_only=there is not None) as kept:
        return estimate([one.cell for one in planned], kept, workers=lanes, resume=resume)


def planned_cells(
    tasks: OneOrMore[str] | None, profile: str | Profile, plugins: Sequence[str], words: Words
) -> tuple[list[Planned], tuple[str, ...]]:
    """The plan, and the modules that workers must import for it."""
    modules = load_plugins(plugins)
    chosen = get_profile(profile) if isinstance(profile, str) else profile
    # Timing gets the threads that torch would take by itself, which is what users get; OMP_NUM_THREADS decides.
    planned = plan(chosen, selected(tasks, **words), threads=torch.get_num_threads())
    if words.get("recipe"):
        check_cells([one.cell for one in planned])
    outside = modules_outside(one.cell for one in planned)
    return planned, tuple(dict.fromkeys([*modules, *outside]))


@contextmanager
def opened(store: AnyPath | None, *, read_only: bool = False) -> Iterator[Store]:
    """The store at this path; without one, a store that is gone afterwards."""
    if store is not None:
        with Store(store, read_only=read_only) as kept:
            yield kept
        return
    with tempfile.TemporaryDirectory(prefix="highway-bench-") as folder, Store(Path(folder) / "store.sqlite") as kept:
        yield kept


def endings_of(rows: pd.DataFrame, summary: Summary) -> list[Ending]:
    """How each cell of the run ended, in the run's order: the worst status of its rows, and that row's message.

    A result that the store had is how the cell ended, unless this very run tried it again and failed.
    """
    rows = rows[rows["axis"].ne(LATER_ATTEMPT) | rows["run_id"].eq(summary.run_id)]
    found: dict[str, tuple[Status, str | None]] = {}
    for digest, group in rows.groupby("digest", sort=False):
        status = min((Status(text) for text in group["status"].unique()), key=RANK.index)
        message: Any = group.loc[group["status"] == status, "message"].iloc[0]
        found[str(digest)] = status, None if pd.isna(message) else str(message)
    return [Ending(cell, *found[digest]) for cell, digest in summary.digests.items()]
