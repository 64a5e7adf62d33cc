"""``compare_my_block``: a block in one file against the committed connections, after a check of pre-norm."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured, UnknownName
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import Event
from highway_bench.frames.rows import block_label, groups
from highway_bench.measure.paired import ALPHA, UNKNOWN
from highway_bench.measure.statistics import IntervalEstimate, log10_interval
from highway_bench.plan.plan import Plan
from highway_bench.plugins import load_plugins
from highway_bench.provenance.machine import cores
from highway_bench.report.format import counted, listed
from highway_bench.results.parquet import ParquetRows, parquet_files
from highway_bench.results.schema import PROTOCOL
from highway_bench.studies.comparison.contrasts import BlockPosition, contrasts_of, ratio_of_means
from highway_bench.studies.comparison.finals import (
    RUNG,
    SETTING,
    TimedProtocol,
    alike,
    check_cells,
    finals,
    first_seconds,
    instead_of,
    label,
)
from highway_bench.studies.decide.candidate import REFERENCE, Candidate, Trainings
from highway_bench.studies.decide.protocol import OF_EVERY_BLOCK, CostProtocol, get_part
from highway_bench.studies.decide.rounds import Trainer

COMMITTED: Final = Path(__file__).resolve().parents[3] / "docs" / "data"
"""The committed rows of the source checkout. They are no part of an installed package."""


class ReferenceDisagrees(HighwayBenchError):
    """The check's losses are not those of the committed rows, so a block that is trained here cannot be compared."""


@dataclass(frozen=True)
class ReferenceCheck:
    """Pre-norm in one family at one depth: ``ratio`` is its mean final loss here over the committed one."""

    family: str
    depth: int
    ratio: IntervalEstimate

    @property
    def agrees(self) -> bool:
        """Whether the interval includes 1; false if a run diverged."""
        return self.ratio.low <= 1 <= self.ratio.high


@dataclass(frozen=True)
class BlockComparison:
    """The comparison of ``block`` (its label): the ``checks``, its ``positions`` by family and depth, and sentences on
    what is ``missing``. ``failed``: some trainings of the block ended with an error."""

    block: str
    checks: tuple[ReferenceCheck, ...]
    positions: tuple[BlockPosition, ...]
    missing: tuple[str, ...]
    failed: bool = False

    @property
    def exit_status(self) -> int:
        """1 if a training failed, 3 if nothing was compared, else 0."""
        return 1 if self.failed else 0 if self.positions else NothingMeasured.exit_status


def compare_my_block(
    file: str,
    *,
    block: str | None = None,
    part: str = "vision",
    families: Sequence[str] = (),
    rows: str | os.PathLike[str] = COMMITTED,
    store: str | os.PathLike[str],
    minutes: float = 30.0,
    engine: AnyEngine = "local",
    workers: int | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> BlockComparison:
    """Train the block that ``file`` registers, and compare it with the committed connections of a part of ``decide``.

    First three seeds of pre-norm are trained at committed rates; if their losses do not agree with the committed ones,
    nothing is compared. Then the block is trained at its first start under the whole protocol (rates tuned, fresh
    seeds), depth by depth as long as ``minutes`` last. ``rows`` is a folder of committed rows; ``store`` receives what
    is trained here, and what it has is not trained again. ``block`` chooses one of several in the file.

    Raises ``BadInput`` for a file without such a block, or a folder without rows of this protocol, and
    ``ReferenceDisagrees``.
    """
    if not minutes > 0:
        raise BadInput(f"a comparison needs more than 0 minutes, not {minutes:g}")
    until = time.monotonic() + 60 * minutes
    name = block_in(file, block)
    chosen = chosen_references(part, families)
    committed = committed_finals(rows)
    check = Trainer(Path(store), engine, workers, on_event)
    cells, candidates, missing = [], [], []
    for family, starts in chosen.items():
        # In some parts only one start of the reference has finals.
        known = [(reference, to_check) for reference in starts if (to_check := check_cells(reference, committed))]
        cells += known[0][1] if known else []
        candidates += [instead_of(known[0][0], name)] if known else []
        missing += [] if known else [f"{family}: no committed rows of {REFERENCE}"]
    if not candidates:
        raise BadInput(f"{rows} has no rows of {REFERENCE} of part {part!r} under protocol {PROTOCOL}")
    check.measure(cells)
    if check.failures:
        raise ReferenceDisagrees(f"nothing is compared: {check.failures}")
    checks = checked(finals(check.rows), committed)
    if unchecked := {cell.family for cell in cells} - {one.family for one in checks}:
        raise ReferenceDisagrees(f"nothing is compared: {REFERENCE} did not end in {listed(sorted(unchecked))}")
    trainer = Trainer(Path(store), engine, workers, on_event)
    first = first_seconds(candidates, check.rows, workers or cores())
    rungs = TimedProtocol(
        part, tuple(candidates), until, first, lambda cells: len(Plan(tuple(cells)).estimate(store).left)
    )
    trainings = trainer.train(rungs.pending)
    mine = finals(trainer.rows)
    late = "no time left, the same command goes on"
    if not rungs.begun and first > 0:
        late = f"no time for the first depth, which takes about {math.ceil(first / 60)} minutes (--minutes)"
    missing += [line for candidate in candidates for line in untrained(candidate, trainings, mine, late)]
    missing += [trainer.failures] if trainer.failures else []
    own = label(candidates[0].template.columns())
    failed = bool(trainer.failures)
    return BlockComparison(own, tuple(checks), tuple(positions(mine, committed)), tuple(missing), failed)


def block_in(file: str, chosen: str | None = None) -> str:
    """The name of the block that ``file`` registers, or of the ``chosen`` one of several."""
    (module,) = load_plugins([file])
    names = [name for name in blocks if blocks.module_of(name) == module]
    if chosen is not None:
        if chosen not in names:
            raise UnknownName(f"block of {file}", chosen, names)
        return chosen
    if len(names) != 1:
        what = f"{counted(len(names), 'block')} ({listed(names)}): choose one with --block" if names else "no block"
        raise BadInput(f"{file} registers {what}")
    return names[0]


def chosen_references(part: str, families: Sequence[str] = ()) -> dict[str, list[Candidate]]:
    """The reference's candidates, one for each start, by family: in ``families`` of the part, by default in all."""
    by_family: dict[str, list[Candidate]] = {}
    chosen = get_part(part)
    if isinstance(chosen, CostProtocol):
        raise BadInput(f"part {part!r} trains nothing; compare-my-block takes one of {', '.join(OF_EVERY_BLOCK)}")
    for candidate in chosen.candidates:
        if candidate.template.block == REFERENCE:
            by_family.setdefault(candidate.template.family, []).append(candidate)
    for name in families:
        if name not in by_family:
            raise UnknownName(f"family of part {part!r} (--part names another one)", name, by_family)
    return {name: starts for name, starts in by_family.items() if not families or name in families}


def committed_finals(folder: str | os.PathLike[str]) -> pd.DataFrame:
    """The ``finals`` in the Parquet files of ``folder``."""
    if not os.path.isdir(folder):
        raise BadInput(
            f"no committed rows: {folder} is no folder. They are in docs/data of the source checkout (--rows)"
        )
    frames = [ParquetRows(path).frame() for path in parquet_files([folder])]
    return finals(pd.concat([frame[frame["axis"].eq("")] for frame in frames], ignore_index=True))


def checked(here: pd.DataFrame, committed: pd.DataFrame) -> list[ReferenceCheck]:
    """The check in every family of ``here``; all intervals hold together with 95 %.

    Raises ``ReferenceDisagrees`` for the first one that does not agree.
    """
    rungs = list(groups(here, RUNG))
    checks = []
    for rung, part in rungs:
        there = alike(committed, rung, RUNG)
        check = ReferenceCheck(rung["family"], rung["depth"], ratio_of_means(part, there, 1 - ALPHA / len(rungs)))
        if not check.agrees:
            loss = "infinite" if math.isnan(check.ratio.value) else f"{check.ratio} times the committed one"
            raise ReferenceDisagrees(
                f"nothing is compared: the loss of {REFERENCE} in {check.family} at depth {check.depth} is {loss} "
                f"({_where(part)} here, {_where(there)} there)"
            )
        checks.append(check)
    return checks


def positions(mine: pd.DataFrame, committed: pd.DataFrame) -> list[BlockPosition]:
    """The position of each rung of ``mine`` among the ``committed`` connections of its setting and depth."""
    every = []
    for rung, runs in groups(mine, RUNG):
        others = [other for _, other in groups(alike(committed, rung, (*SETTING, "depth")), ["block"])]
        every.append(
            BlockPosition(
                family=block_label(rung["family"], rung["family_options"]),
                dataset=rung["dataset"],
                depth=rung["depth"],
                rate=float(runs["rate"].iloc[0]),
                successes=int(runs["success"].sum()),
                runs=len(runs),
                loss=log10_interval(runs["loss"]) if runs["loss"].gt(0).all() else UNKNOWN,
                contrasts=contrasts_of(runs, others),
            )
        )
    return every


def untrained(candidate: Candidate, trainings: Trainings, mine: pd.DataFrame, late: str) -> list[str]:
    """One sentence on the depths of ``candidate`` without finals, and why; ``late`` where it was not begun."""
    family = candidate.template.family
    trained = set(mine.loc[mine["family"] == family, "depth"])
    lacking = [str(depth) for depth in candidate.depths if depth not in trained]
    if not lacking:
        return []
    why = "no seed trained at the depth before" if trained else "no training finished"
    why = late if candidate.pending(trainings) else why
    return [f"{family}, depth {listed(lacking)}: {why}"]


def _where(runs: pd.DataFrame) -> str:
    """The machines and the versions of torch of ``runs``."""
    return f"torch {', '.join(sorted(set(runs['torch'])))} on {', '.join(sorted(set(runs['machine'])))}"
