"""Schedule: the cells of a run and those that they need: which are stored already, can run now, or wait for others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput, HighwayBenchError
from highway_bench.execution.failure import failure
from highway_bench.execution.job import CellResult, Job
from highway_bench.execution.key import OldKeys, cell_key, modules_of, users_items, versions_of, with_items
from highway_bench.provenance import Identity, identity
from highway_bench.results.schema import FAILURES, Status
from highway_bench.results.store import Store
from highway_bench.source import SourceTree
from highway_bench.tasks.base import CellCost, Task, tasks
from highway_bench.tasks.training_cells import populations_of
from highway_bench.training.checkpoint import headers_in, sweep

TOGETHER = "together"  # the metric of the number of networks that were trained as one
FAILED, ALL = "failed", "all"


def with_needs(cells: Iterable[Cell]) -> dict[Cell, tuple[Cell, ...]]:
    """``cells`` and all cells that they need (the trials of a search), each once, with the cells it needs itself.
    ``cells`` come first.

    Raises ``UnknownName`` for a task, block or family that is not registered.
    """
    needs: dict[Cell, tuple[Cell, ...]] = {}
    waiting = list(dict.fromkeys(cells))
    for cell in waiting:  # grows: a needed cell may need others
        if cell not in needs:
            needs[cell] = tuple(tasks.get(cell.task).needs(cell))
            waiting.extend(needs[cell])
    return needs


def is_named(rerun: str, cell: Cell) -> bool:
    """Whether ``rerun`` names ``cell``: then it is measured from its beginning, whatever is stored of it.

    ``failed`` names no cell: every run measures again what failed. ``all`` names every cell. Any other word is a
    pattern, with wildcards, and names the cells whose name (``str(cell)``) has it in it.
    """
    return rerun == ALL or (rerun != FAILED and fnmatchcase(str(cell), f"*{rerun}*"))


def cost_of(cell: Cell) -> CellCost:
    """What measuring a cell takes. One that cannot be has a second: its row will say why it failed."""
    try:
        return tasks.get(cell.task).cost(cell)
    except USER_ERRORS:  # a plug-in's task, block or family
        return CellCost()


@dataclass
class ScheduledCell:
    """A cell of the run. ``ran`` and ``digest`` are known once the cells it needs have ended.

    ``versions`` are those of what it runs, by name; ``items`` is a hash of the user's data. ``ran`` is the cell that is
    run for it: itself, or with values that other cells' results decide. ``refused`` is the status and the reason of a
    cell that cannot be run. ``status`` is its result in this run or in the store, ``stored`` whether it was stored
    before, ``chosen`` whether this run measures it. ``group`` is equal for cells that are measured together, and known
    from the first jobs on.
    """

    cell: Cell
    task: Task
    needs: tuple[Cell, ...]
    ran: Cell
    items: str | None = None
    digest: str = ""
    refused: tuple[Status, str] | None = None
    versions: dict[str, str] = field(default_factory=dict)
    status: Status | None = None
    stored: bool = False
    chosen: bool = False
    group: Hashable = None

    @property
    def cost(self) -> CellCost:
        return cost_of(self.ran)


@dataclass
class Schedule:
    """The cells of a run and all that they need, each once, in the order in which they were added.

    A cell whose rows are in ``store`` is done, unless it failed, even where the store has an earlier result. A cell
    that cannot be run, because of the results of the cells it needs, is done while the reason is the same. No cell that
    ``rerun`` names (see ``is_named``) is done; with ``strict_source`` neither is one whose rows are of another source
    than today's.
    """

    store: Store
    rerun: str = FAILED
    strict_source: bool = False
    items: dict[Cell, ScheduledCell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tree = SourceTree()
        self._before = self.store.digests()
        self._old = OldKeys(self.store)
        self._versions: dict[str, tuple[dict[str, str], str | None]] = {}  # equal for cells that run the same
        self._sizes: Counter[Hashable] = Counter()  # of the groups, with the cells that are stored

    def add(self, cells: Mapping[Cell, tuple[Cell, ...]]) -> None:
        """Add ``cells``, each with the cells it needs. Raises ``UnknownName`` for an unknown task, block or family."""
        for cell, needs in cells.items():
            if cell not in self.items:
                versions, items = self._versions_of(cell)
                self.items[cell] = ScheduledCell(cell, tasks.get(cell.task), needs, cell, items, versions=versions)

    def check_rerun(self) -> None:
        """Raise ``BadInput`` for a pattern that is in no cell's name."""
        if self.rerun not in {FAILED, ALL} and not (self.rerun and any(map(self._is_named, self.items))):
            raise BadInput(
                f"no cell of this run has {self.rerun!r} in its name; --rerun takes failed, all or a pattern"
            )

    def ready(self) -> list[ScheduledCell]:
        """Items to run now: not chosen before, and all cells they need have ended. Items that the store has get its
        status."""
        chosen: list[ScheduledCell] = []
        while fresh := [item for item in self.items.values() if self._is_fresh(item)]:
            for item in fresh:
                self._identify(item)
            self._before |= self._old.adopt(item for item in fresh if item.digest not in self._before)
            others = self.of_other_sources(fresh) if self.strict_source else set()
            for item in fresh:
                again = item.digest in others or self._is_named(item.cell)
                if again or self._before.get(item.digest) in {None, *FAILURES}:
                    item.chosen = True
                    chosen.append(item)
                else:
                    item.status, item.stored = self._before[item.digest], True
        return chosen

    def of_other_sources(self, items: Iterable[ScheduledCell]) -> set[str]:
        """The keys of those stored ``items`` whose rows are of another source than today's."""
        cells = {item.digest: item.cell for item in items if item.digest in self._before}
        return {key for key, source in self.store.sources(cells).items() if source != self.source(cells[key])}

    def source(self, cell: Cell) -> str:
        """The hash of the source that ``cell`` runs. What no module defines is in the cell's key."""
        return self._tree.digest(modules_of(cell))

    def check_all_ended(self) -> None:
        """Raise ``HighwayBenchError`` if cells still wait for each other, which is an error of their task."""
        left = [item.cell for item in self.items.values() if item.status is None]
        if left:
            raise HighwayBenchError(f"{len(left)} cells need each other in a cycle, among them: {left[0]}")

    def jobs(self, items: Sequence[ScheduledCell], plugins: Sequence[str]) -> list[Job]:
        """``items`` in groups. Jobs that run in parallel are sorted longest first, so that the run does not wait for
        one long job."""
        sweep(self.checkpoints, {item.digest for item in items if self._is_named(item.cell)})
        if items:
            self._find_groups()
        groups: dict[Hashable, list[ScheduledCell]] = {}
        for item in items:
            groups.setdefault(item.group, []).append(item)
        seconds = {key: sum(item.cost.seconds for item in group) for key, group in groups.items()}
        in_order = sorted(groups, key=lambda key: 0.0 if groups[key][0].task.alone else -seconds[key])
        return [self._job(groups[key], plugins) for key in in_order]

    def checked(self, item: ScheduledCell, result: CellResult) -> CellResult:
        """``result``, or a failure where the cell's digest names another machine, or torch, than those it ran with.

        Its rows would pass for those of the machine that was planned. A result of a smaller population than planned
        gets a remark.
        """
        ran_on, planned = result.identity, identity(item.cell.device)
        if ran_on is None or ran_on == planned or self._digest(item, ran_on) == item.digest:
            return self._remarked(item, result)
        message = f"ran on {ran_on.machine} with torch {ran_on.torch}, "
        message += f"but was planned for {planned.machine} with torch {planned.torch}"
        return CellResult(
            index=result.index, status=Status.FAILED, message=message, seconds=result.seconds, identity=ran_on
        )

    @property
    def checkpoints(self) -> Path:
        """The folder next to the store for the checkpoints of long measurements; created with the first one."""
        return self.store.path.with_name(f"{self.store.path.name}.checkpoints")

    def count_resumed(self) -> int:
        """How many of the chosen cells resume from a checkpoint."""
        resumable = {key for _, keys in headers_in(self.checkpoints) for key in keys}
        resumed = (item for item in self.items.values() if item.chosen and not self._is_named(item.cell))
        return sum(item.digest in resumable for item in resumed)

    def sweep(self) -> None:
        """Remove the checkpoints whose cells have all ended; called after a run."""
        if self.checkpoints.is_dir():
            sweep(self.checkpoints, {key for key, status in self.store.digests().items() if status not in FAILURES})

    def _is_named(self, cell: Cell) -> bool:
        return is_named(self.rerun, cell)

    def _is_fresh(self, item: ScheduledCell) -> bool:
        return item.status is None and not item.chosen and all(self.items[need].status for need in item.needs)

    def _identify(self, item: ScheduledCell) -> None:
        ended = [self.items[need] for need in item.needs if self.items[need].status not in FAILURES]
        results = {other.cell: self.store.scalars(other.digest) for other in ended}
        try:
            item.ran = item.task.resolve(item.cell, results)
        except USER_ERRORS as error:
            item.refused = failure(error)
        item.digest = self._digest(item, identity(item.cell.device))

    def _digest(self, item: ScheduledCell, where: Identity) -> str:
        return cell_key(
            with_items(item.cell, item.items),
            ran=with_items(item.ran, item.items) if item.ran != item.cell else None,
            versions=item.versions,
            refused=item.refused,
            torch=where.torch,
            machine=where.machine if item.task.meter else None,
        )

    def _versions_of(self, cell: Cell) -> tuple[dict[str, str], str | None]:
        """The versions of what ``cell`` runs, and a hash of the user's items, which have no version."""
        recipe = [cell.recipe.get(name) for name in ("layout", "loss", "dataset")]
        runs = repr([cell.task, cell.block, cell.family, cell.dataset, cell.seq_len, *recipe])
        if runs not in self._versions:
            versions, items = versions_of(cell, self._tree), users_items(cell)
            if items is not None:
                versions.pop(f"data set {cell.dataset}")
            self._versions[runs] = versions, items
        return self._versions[runs]

    def _find_groups(self) -> None:
        """Find the group of each cell that is stored or can run now; the others follow once they can run."""
        for item in self.items.values():
            if item.group is None and item.digest and item.refused is None:
                item.group = item.task.name, item.task.group(item.ran), item.ran.threads
                self._sizes[item.group] += 1

    def _remarked(self, item: ScheduledCell, result: CellResult) -> CellResult:
        """``result``, with a remark in each of its rows where it trained in a smaller population than planned.

        The others are stored already, or an end of their worker divided the population. Its products are summed in
        another order than those of one network, so losses differ as after a change of the weights' last digits.
        """
        trained = [one for one in result.measurements if one.metric == TOGETHER and one.message is None]
        if not trained:
            return result
        cells = [item.ran] * self._sizes[item.group]
        planned = {len(population) for population in populations_of(cells, None)}
        together = int(trained[0].value or 1)
        if together in planned:
            return result
        remark = f"trained in a population of {together}, not of {max(planned)} as planned: rounding differs"
        return replace(
            result,
            message=_joined(result.message, remark),
            measurements=tuple(replace(one, message=_joined(one.message, remark)) for one in result.measurements),
        )

    def _job(self, group: Sequence[ScheduledCell], plugins: Sequence[str]) -> Job:
        first = group[0]
        return Job(
            task=first.task.name,
            keys=tuple(item.digest for item in group),
            cells=tuple(item.ran for item in group),
            mode="+".join(sorted({item.ran.mode for item in group})),
            threads=first.ran.threads,
            alone=first.task.alone,
            timeouts=tuple(item.task.timeout(item.ran) for item in group),
            plugins=tuple(plugins),
            bytes=max(item.cost.bytes for item in group),
            checkpoints=self.checkpoints.absolute(),
            sources=self._tree.fingerprints(name for item in group for name in modules_of(item.cell)),
        )


def _joined(message: str | None, remark: str) -> str:
    return f"{message}; {remark}" if message else remark
