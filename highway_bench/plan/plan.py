"""Plan: the cells to measure, their estimated cost, and their run. Commands, Python and reproductions all use it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.preflight import preflight
from highway_bench.execution.progress import Event, duration
from highway_bench.execution.record import changes, requested
from highway_bench.execution.runner import Summary, run_cells
from highway_bench.execution.schedule import FAILED, Schedule, with_needs
from highway_bench.plan.checks import check_cells, check_data, check_grids, check_selection
from highway_bench.plan.data_choice import named_data
from highway_bench.plan.estimate import Estimate, estimate, shard
from highway_bench.plan.expand import (
    chosen_kinds,
    expand,
    given_sizes,
    grid_blocks,
    grid_families,
    wanted_lengths,
    wanted_widths,
    without_depth_aware,
)
from highway_bench.plan.grid import Grid
from highway_bench.plan.profiles import Profile, get_profile
from highway_bench.plan.selection import Selection
from highway_bench.plugins import load_plugins, modules_outside
from highway_bench.provenance.free_memory import gib
from highway_bench.provenance.machine import cores
from highway_bench.results.schema import FAILURES, LATER_ATTEMPT, RANK, Status
from highway_bench.results.store import Store
from highway_bench.tasks import tasks

if TYPE_CHECKING:
    from pandas import DataFrame

AnyPath = str | os.PathLike[str]
AnyStore = AnyPath | Store

EVERYTHING = Selection()


@dataclass(frozen=True)
class Ending:
    """The status of one cell, and the message of its row."""

    cell: Cell
    status: Status
    message: str | None


@dataclass(frozen=True)
class RunResult:
    """A run's rows (of all its cells, including those measured before), the records of all runs in the store,
    its summary, its failures, and the endings that the profile does not expect."""

    rows: DataFrame
    runs: dict[str, dict[str, Any]]
    summary: Summary
    failures: list[Ending]
    unexpected: list[Ending]


@dataclass(frozen=True)
class Plan:
    """Cells to measure, in order, and the modules that workers import first.

    Modules that register the cells' own entries need not be among ``plugins``: a run adds them.
    ``expected`` maps a cell to the statuses, apart from ``ok``, that the profile expects of it; for a cell that is not
    in it every status is expected. With ``loads``, the data are loaded once before the run, so that a broken file, or a
    batch larger than its data, is an error before anything is measured. ``remarks`` say what is done with users'
    layers and data.
    """

    cells: tuple[Cell, ...]
    plugins: tuple[str, ...] = ()
    expected: Mapping[Cell, frozenset[str]] = field(default_factory=dict)
    loads: bool = True
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, profile: str | Profile = "standard", selection: Selection = EVERYTHING, plugins: Sequence[str] = ()
    ) -> Plan:
        """The cells of ``profile`` under ``selection``, each once, in the order of the profile's grids.

        ``plugins`` are modules, or ``.py`` files, that register blocks, families, tasks or data sets. Raises
        ``BadInput`` for an impossible selection, and ``NothingMeasured`` if no cell is left.
        """
        modules = load_plugins(plugins)
        chosen = get_profile(profile) if isinstance(profile, str) else profile
        selection, note = with_data(selection)
        check_selection(selection)
        grids = [grid for grid in chosen.grids if not selection.task or grid.task in tasks.select(*selection.task)]
        check_grids(grids, selection)
        expected: dict[Cell, frozenset[str]] = {}
        trained: dict[tuple[str, str], Any] = {}
        for grid in grids:
            for cell in expand(grid, selection, trained):
                expected.setdefault(cell, grid.statuses)
        if not expected:
            raise NothingMeasured(f"profile {chosen.name!r} has no cell for this selection")
        if selection.seq_len and all(cell.seq_len is None for cell in expected):
            raise BadInput("no cell of this selection has sequences whose length can be chosen")
        cells = tuple(expected)
        # The data sets of the package's own profiles are part of installed packages, and larger than their batches.
        loads = not isinstance(profile, str) or selection.dataset is not None or selection.batch_size is not None
        return cls(cells, modules, expected, loads, (*note, *remarks_on(grids, selection)))

    @cached_property
    def needs(self) -> dict[Cell, tuple[Cell, ...]]:
        """All cells of the plan, including those that others need (the trials of a search), each with the cells it
        needs."""
        return with_needs(self.cells)

    def shard(self, part: str) -> Plan:
        """The part "I/N" of this plan's cells (see ``shard``), for one of N machines; an import joins their stores.

        Raises ``BadInput`` for a part that is none, and ``NothingMeasured`` for one without cells.
        """
        chosen = shard(self.needs, part)
        if not chosen:
            raise NothingMeasured(f"part {part} has no cells: fewer sets of cells belong together than there are parts")
        return replace(self, cells=tuple(cell for cell in self.cells if cell in chosen))

    def estimate(
        self,
        store: AnyStore | None = None,
        *,
        workers: int | None = None,
        rerun: str = FAILED,
        strict_source: bool = False,
    ) -> Estimate:
        """The cells that ``run`` would measure, and roughly their time and memory. Writes nothing.

        Raises ``BadInput`` for a cell that its task refuses.
        """
        check_cells(self.needs)
        existing = None if store is None or (not isinstance(store, Store) and not os.path.exists(store)) else store
        with opened(existing, read_only=existing is not None) as given:
            return estimate(self.needs, given, workers=workers or cores(), rerun=rerun, strict_source=strict_source)

    def stored(self, store: Store) -> DataFrame:
        """The rows that ``store`` has of the cells, and of those they need."""
        schedule = Schedule(store)
        schedule.add(self.needs)
        schedule.ready()
        return store.frame(digest=sorted({item.digest for item in schedule.items.values() if item.stored}))

    def __repr__(self) -> str:
        cost = self.estimate(workers=cores())
        named = {
            "tasks": {cell.task for cell in self.cells},
            "blocks": {cell.block for cell in self.cells},
            "families": {cell.family for cell in self.cells},
        }
        lines = [f"{what}: {', '.join(sorted(names))}" for what, names in named.items()]
        lines.append(f"about {duration(cost.seconds)} on this machine, the largest cell {gib(cost.bytes)}")
        return "\n".join([f"{len(self.cells)} cells, {len(cost.cells)} with those that they need", *lines])

    def changes(self, store: AnyPath) -> list[str]:
        """What this plan asks for that the last run into ``store`` did not, and the reverse, in two lines at most."""
        if not os.path.exists(store):  # False for a name that is too long, where Path.exists raises
            return []
        with opened(store, read_only=True) as given:
            before = [record["requested"] for record in given.runs().values() if "requested" in record]
        return changes(before[-1], requested(self.needs)) if before else []

    def run(
        self,
        store: AnyStore | None = None,
        *,
        engine: AnyEngine = "local",
        workers: int | None = None,
        rerun: str = FAILED,
        strict_source: bool = False,
        on_event: Callable[[Event], None] | None = None,
        command: Sequence[str] | None = None,
    ) -> RunResult:
        """Measure the cells, and the cells they need, that ``store`` lacks.

        ``store`` is a store or the path of one; without it no rows are stored. ``engine`` is an engine or the name of
        one, which runs ``workers`` processes in parallel (by default, one per core). ``rerun`` says which stored cells
        are measured again: ``failed``, ``all``, or a pattern of their names; ``strict_source``
        adds those whose rows are of another source than today's. ``on_event`` receives the run's events;
        ``command`` is stored with the run, by default this process's. Raises ``BadInput``, before anything is measured,
        for a cell that its task refuses, and for a user's layer that fails the preflight.
        """
        check_cells(self.needs)
        if self.loads:
            check_data(self.cells)
        plugins = tuple(dict.fromkeys([*self.plugins, *modules_outside(self.cells)]))
        preflight(self.cells, plugins)
        with opened(store) as given:
            summary = run_cells(
                self.cells,
                given,
                engine=engine,
                workers=workers,
                plugins=plugins,
                rerun=rerun,
                strict_source=strict_source,
                on_event=on_event,
                command=command,
            )
            rows = given.frame(digest=sorted(set(summary.digests.values())))
            runs = given.runs()
        endings = endings_of(rows, summary)
        expected = {cell: {Status.OK, *statuses} for cell, statuses in self.expected.items()}
        return RunResult(
            rows,
            runs,
            summary,
            [ending for ending in endings if ending.status in FAILURES],
            [ending for ending in endings if ending.status not in expected.get(ending.cell, {ending.status})],
        )


def with_data(selection: Selection) -> tuple[Selection, tuple[str, ...]]:
    """``selection`` with the data set of its ``data``, which are read, and a line on what was taken; else as it is."""
    if selection.data is None:
        return selection, ()
    if selection.dataset is not None:
        raise BadInput("give data of your own or the name of a data set, not both")
    choice = named_data(selection.data, target=selection.target, images=chosen_kinds(selection) == {"image"})
    options = {**choice.options, **selection.recipe.get("dataset", {})}
    changed = replace(selection, data=None, dataset=choice.name, recipe={**selection.recipe, "dataset": options})
    return changed, (f"data: {choice.note}",) if choice.note else ()


@contextmanager
def opened(store: AnyStore | None, *, read_only: bool = False) -> Iterator[Store]:
    """The store at this path, or this store; with ``None``, a temporary store."""
    if isinstance(store, Store):
        yield store
        return
    if store is not None:
        with Store(store, read_only=read_only) as opened_store:
            yield opened_store
        return
    with (
        tempfile.TemporaryDirectory(prefix="highway-bench-") as folder,
        Store(Path(folder) / "store.sqlite") as temporary,
    ):
        yield temporary


def remarks_on(grids: Sequence[Grid], selection: Selection) -> tuple[str, ...]:
    """What is done with the users' layers and blocks of a plan, each in a sentence."""
    said: dict[str, None] = {}
    left_out: dict[tuple[str, str], dict[str, None]] = {}
    for grid in grids:
        specs = list(map(blocks.get, grid_blocks(grid, selection)))
        for (family, width), spec in product(given_sizes(grid, selection), specs):
            named = spec.group == "own" or spec.name in selection.block
            if named and (refusal := spec.refusal(family, width)):
                left_out.setdefault((spec.name, refusal), {})[family.name] = None
        for name in without_depth_aware(grid, selection):
            if len(grid_blocks(grid, selection)) > 1:
                said[f"{name} has one start alone, so all others are measured at both of theirs"] = None
        for family in grid_families(grid, selection):
            said |= dict.fromkeys(f"{family.name}: {remark}" for remark in family.remarks)
            for width in wanted_widths(grid, selection, family):
                nearest = family.nearest_width(width)
                if nearest != width:
                    said[f"{family.name}: it does not take width {width}, and is measured at {nearest}"] = None
            for length, taken in zip(grid.seq_lens, wanted_lengths(grid, family, selection), strict=False):
                if taken != length and family.kind == "sequence":
                    said[f"{family.name}: it does not take {length} steps, and is measured at {taken}"] = None
    skipped = (f"{name} is left out of {', '.join(names)}: {why}" for (name, why), names in left_out.items())
    return (*said, *skipped)


def endings_of(rows: DataFrame, summary: Summary) -> list[Ending]:
    """How each cell of the run ended, in the run's order: the worst status of its rows, and that row's message.

    A result of an earlier run counts, unless this run measured the cell again and failed.
    """
    import pandas as pd

    rows = rows[rows["axis"].ne(LATER_ATTEMPT) | rows["run_id"].eq(summary.run_id)]
    rank = rows["status"].astype(str).map(RANK.index)
    worst = rows.loc[rank.groupby(rows["digest"], observed=True).idxmin()].astype(object)
    ended = {
        digest: (Status(status), None if pd.isna(message) else message)
        for digest, status, message in zip(worst["digest"], worst["status"], worst["message"], strict=True)
    }
    return [Ending(cell, *ended[digest]) for cell, digest in summary.digests.items()]
