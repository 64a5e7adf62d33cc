"""Running: what is registered, as small frames, and the measurement of a profile in one call."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pandas as pd

from highway_bench.catalogue import catalogue
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import in_notebook, showing_progress, stderr_console
from highway_bench.execution.schedule import FAILED
from highway_bench.interactive.measured import MeasuredRows
from highway_bench.options import help_of, with_near_names
from highway_bench.plan.plan import AnyStore, Plan, opened
from highway_bench.plan.profiles import Profile
from highway_bench.plan.selection import STORE, AnyBlock, AnyFamily, OneOrMore, Selection, options_of
from highway_bench.results.store import Store
from highway_bench.tasks import tasks as all_tasks
from highway_bench.tasks.trainability import Trainability


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


@with_near_names
def run(
    tasks: OneOrMore[str] | None = None,
    *,
    profile: str | Profile = "standard",
    block: OneOrMore[AnyBlock] | None = None,
    family: OneOrMore[AnyFamily] | Mapping[str, AnyFamily] | None = None,
    depth: OneOrMore[int] | None = None,
    width: OneOrMore[int] | None = None,
    match: str | None = None,
    dtype: OneOrMore[str] | None = None,
    device: str | None = None,
    mode: OneOrMore[str] | None = None,
    phase: OneOrMore[str] | None = None,
    seed: OneOrMore[int] | None = None,
    start: OneOrMore[str] | None = None,
    dataset: str | None = None,
    data: Any = None,
    target: str | None = None,
    batch_size: int | None = None,
    seq_len: OneOrMore[int] | None = None,
    block_options: Mapping[str, Any] | None = None,
    family_options: Mapping[str, Any] | None = None,
    recipe: Mapping[str, Any] | None = None,
    threads: int | None = None,
    store: AnyStore | None = STORE,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    rerun: str = FAILED,
    strict_source: bool = False,
    shard: str | None = None,
    trials: bool = False,
    progress: bool | None = None,
) -> MeasuredRows:
    """Measure a profile, narrowed or changed by options, each with one value or several, and return its results.

    A block may be its class, a family a function from a width to a module, or a mapping of such functions by name.
    ``store`` is the SQLite file for the rows, by default that of the command line: cells that it has are not measured
    again, except those of ``rerun``: ``failed``, ``all``, or a pattern of their names; with ``strict_source`` also
    those whose rows are of another source than today's. ``store=None`` keeps nothing. An interrupt returns what is
    measured so far; the same call goes on.

    Trials of a search are returned with ``trials`` alone, and so are probes (trainings too short for a verdict) of a
    task and family that have finals. ``plugins`` are modules, or ``.py`` files, that register blocks, families, tasks
    or data sets. ``engine`` decides where cells run: the name of an engine, or an engine. ``shard`` ("3/8") measures
    one of several parts of the cells. ``progress`` is shown by default in a notebook. A failure is a row, not an
    exception.

    Raises ``BadInput`` for an impossible selection, before anything is measured, and ``NothingMeasured`` where no cell
    is left.

    >>> results = hb.run("memory", profile="smoke", block=["plain", "highway"], family="dense")
    """
    given = locals()
    selection = Selection.of(tasks, **{name: given[name] for name in options_of(Selection) if name != "task"})
    plan = Plan.of(profile, selection, plugins)
    plan = plan if shard is None else plan.shard(shard)
    notes = [*plan.remarks, *([] if store is None else [f"store: {store.path if isinstance(store, Store) else store}"])]
    shown = showing_progress(notes=notes) if progress or (progress is None and in_notebook()) else nullcontext()
    note = ""
    if isinstance(shown, nullcontext):
        for line in notes:
            stderr_console().print(line, highlight=False, markup=False, soft_wrap=True)
    with opened(store) as kept, shown as on_event:
        try:
            result = plan.run(
                kept, engine=engine, workers=workers, rerun=rerun, strict_source=strict_source, on_event=on_event
            )
            rows, runs = result.rows, result.runs
        except KeyboardInterrupt:
            rows, runs = plan.stored(kept), kept.runs()
            done = rows["digest"].nunique()
            again = "the same call goes on" if store is not None else "nothing is kept, as store is None"
            note = f"stopped after {done} of {len(plan.needs)} cells, trials included: {again}"
    rows["purpose"] = purposes(rows)
    return MeasuredRows(rows if trials else finals(rows), runs, note)


run.__doc__ = f"{run.__doc__}\n    Options:\n\n" + "\n".join(
    f"    {name}: {help_of(option)}" for name, option in options_of(Selection).items() if name != "task"
)


def purposes(rows: pd.DataFrame) -> pd.Series:
    """What the training of each row was for, final, trial or probe; empty for rows of no training."""

    def purpose(task: str, recipe: str, trial: float) -> str:
        if not isinstance(all_tasks.get(task), Trainability):
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
