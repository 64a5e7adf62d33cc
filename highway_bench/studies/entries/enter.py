"""``enter``: check a block, measure it in the columns of the protocol, and write its entry."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from highway_bench.block_check import check_block
from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured, UnknownName
from highway_bench.execution.progress import Event
from highway_bench.plugins import load_plugins
from highway_bench.report.format import counted, listed
from highway_bench.results.store import Store
from highway_bench.studies.decide.rounds import Trainer
from highway_bench.studies.entries.board import problems_apart
from highway_bench.studies.entries.folder import Entry, write_entry
from highway_bench.studies.entries.protocol import EntryWork, entry_columns


class NotAllMeasured(HighwayBenchError):
    """Some trainings of the block ended with an error, so there is no entry."""


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


def default_store(block: str) -> Path:
    """Where an entry's rows are measured: another source of the block has another store."""
    source = Path(str(sys.modules[blocks.module_of(block)].__file__)).read_bytes()
    return Path("reports/entries") / f"{block}-{hashlib.sha256(source).hexdigest()[:8]}.sqlite"


def enter(
    file: str,
    *,
    paper: str,
    author: str = "",
    block: str | None = None,
    out: Path = Path("entries"),
    store: Path | None = None,
    workers: int | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> tuple[Entry, EntryWork]:
    """Check the block that ``file`` registers, measure it, and write its entry into a folder of ``out``.

    What ``store`` has is not measured again, so the same call goes on after an interruption. Raises ``BadInput`` for a
    block that fails a check or cannot be loaded from its entry alone, ``NotAllMeasured``, and ``ReferenceDisagrees``
    where pre-norm does not train as it should.
    """
    name = block_in(file, block)
    if faults := [one for one in check_block(name) if one.problem]:
        raise BadInput(f"{name} fails {counted(len(faults), 'check')}, the first in {faults[0].family}: "
                       f"{faults[0].check}: {faults[0].problem} (highway-bench check)")  # fmt: skip
    work = EntryWork(name, entry_columns())
    if len(work.missing) == len(work.columns):
        reasons = "; ".join(f"{label}: {why}" for label, why in work.missing.items())
        raise NothingMeasured(f"{name} can be compared in no column: {reasons}")
    path = store or default_store(name)
    trainer = Trainer(path, workers=workers, on_event=on_event)
    work.measure(trainer)
    if trainer.failures:
        raise NotAllMeasured(trainer.failures)
    digests = {digest for result in trainer.results for digest in result.summary.digests.values()}
    with Store(path, read_only=True) as opened:
        entry = write_entry(work, out / name, opened, digests, paper=paper, author=author)
    if wrong := problems_apart(entry.folder, "--quick"):
        raise BadInput(f"{entry.folder} was written, and is not right: {wrong[0]}")
    return entry, work
