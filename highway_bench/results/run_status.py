"""Run status: how far the last run into a store is, read by another process while it runs or after it was stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from highway_bench.errors import NothingMeasured
from highway_bench.provenance.lock import holder, is_held
from highway_bench.results.database import lock_path
from highway_bench.results.integrity import PROGRESS
from highway_bench.results.schema import FAILURES, Row
from highway_bench.results.store import Store

RunState = Literal["running", "interrupted", "finished"]


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """The last run: ``counts`` are its ended cells by status, including stored ones; ``failures`` one row of each cell
    that failed in it; ``running`` the names of the cells that its workers measure; ``left`` the estimated seconds."""

    run_id: str
    state: RunState
    process: int
    started: str
    updated: str
    command: list[str]
    cells: int
    counts: Mapping[str, int]
    left: float
    running: list[str]
    failures: list[Row]

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        return sum(self.counts.get(status, 0) for status in FAILURES)


def run_status(path: str | os.PathLike[str]) -> RunStatus:
    """The status of the last run into the store at ``path``.

    Raises ``BadInput`` if there is no store, and ``NothingMeasured`` if no run has written its progress there.
    """
    with Store(path, read_only=True) as store:
        lock = lock_path(store.path)
        running = holder(lock) if is_held(lock) else ""  # first: a run that ends now has stored its last progress
        progress = store.progress()
        if progress is None:
            raise NothingMeasured(f"no run has written its progress into {store.path}")
        is_running = running == str(progress["process"])
        record: dict[str, Any] = store.runs().get(progress["run_id"], {})
        failures = store.failures(progress["run_id"])
    done = sum(progress["counts"].values())
    state: RunState = "running" if is_running else "finished" if done >= progress["cells"] else "interrupted"
    return RunStatus(
        state=state,
        started=str(record.get("started") or ""),
        command=list(map(str, record.get("command") or [])),
        failures=failures,
        **{name: progress[name] for name in PROGRESS} | ({} if is_running else {"running": []}),
    )
