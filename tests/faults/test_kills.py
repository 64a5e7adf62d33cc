"""A chain of kills at random moments, each resume killed again: no finished cell is lost, none is measured again.

The chain's folder has all of its state, so the next call can go on with it (see ``scale``): the cells grow with the
kills, and each call ends with a run that nobody kills.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from highway_bench.cell import Cell
from highway_bench.results import Store
from tests.execution.processes import FAKES, begun_in, run_apart, stored_in, wait_until, workers_in, write_cells
from tests.faults.scale import CHAIN, KILLS, note
from tests.inline_engine import cell_of

CELLS_A_KILL = 60  # of a twentieth of a second each: enough for every kill to meet a run that measures


class Chain:
    """The chain in a folder: its store, its log, and the kills so far by what was killed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        names = ("store.sqlite", "log.txt", "cells.jsonl", "kills.json")
        self.store, self.log, self.lines, self._state = (folder / name for name in names)
        self.log.touch()
        known = json.loads(self._state.read_text(encoding="utf-8")) if self._state.exists() else {}
        self.kills = Counter(known)

    def cells(self, kills: int) -> list[Cell]:
        """The cells of a chain of so many kills; half of them in groups, as timed cells and populations are."""
        recipe = {"log": str(self.log), "do": "short"}
        cells = [
            cell_of(("fake", "fake-trials")[number % 2], depth=1 + number // 8, seed=number, recipe=recipe)
            for number in range(CELLS_A_KILL * kills)
        ]
        write_cells(self.lines, cells)
        return cells

    def count(self, what: str) -> None:
        """Note one kill."""
        self.kills[what] += 1
        self._state.write_text(json.dumps(self.kills), encoding="utf-8")

    def start(self) -> subprocess.Popen[str]:
        """Start the command."""
        return run_apart(self.store, self.lines)


def victims(process, what):
    """The processes to kill. A run that has no worker yet is killed itself."""
    children = process.children(recursive=True)
    workers = [child for child in children if is_worker(child)]
    if what == "group":
        return [process, *children]
    return workers[:1] if what == "worker" and workers else [process]


def is_worker(process):
    """Whether it is a worker that has not ended."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def run_and_kill(chain, chance, most):
    """Run the command once, with kills until the chain has ``most``; returns its exit status."""
    begun = len(begun_in(chain.log))
    process, delay = chain.start(), chance.uniform(0.0, 0.8)
    while chain.kills.total() < most and process.poll() is None:
        if len(begun_in(chain.log)) > begun:  # cells are being measured
            time.sleep(delay)
            what = chance.choice(["driver", "worker", "group"])
            try:
                for victim in victims(psutil.Process(process.pid), what):
                    victim.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:  # one of them has just ended
                continue
            chain.count(what)
            if what != "worker":
                break
            delay = chance.uniform(0.0, 0.8)
        time.sleep(0.02)
    return process.wait(1200)


@pytest.mark.slow
def test_a_chain_of_kills(tmp_path):
    chain = Chain(Path(CHAIN) if CHAIN else tmp_path)
    most = chain.kills.total() + KILLS
    chance = random.Random(most)
    every = chain.cells(most)
    before, code = stored_in(chain.store), -1
    lost, again = 0, []  # cells that were stored before a start: gone after it, or measured once more
    while code != 0:
        earlier = len(begun_in(chain.log))
        code = run_and_kill(chain, chance, most)
        now = stored_in(chain.store)
        lost += len(before - now)
        again += [cell for cell in begun_in(chain.log)[earlier:] if cell in before]
        before = now
        assert code <= 1 or chain.kills.total() < most, f"the run ended with {code}"
    assert chain.kills.total() == most
    with Store(chain.store) as store:
        assert store.problems() == []
        rows = store.rows(metric="loss")
    failed = [row for row in rows if row["status"] != "ok"]
    assert {row["status"] for row in failed} <= {"crashed", "oom"}  # of a kill of its worker in the last run
    wait_until(lambda: not any(map(is_working, workers_in(chain.log))), seconds=60)  # none outlives its runner
    figures = {"cells": len(every), "crashed": len(failed), "lost": lost, "measured_again": len(again)}
    note("kills", **chain.kills, total=most, **figures)
    assert (lost, again, len(rows)) == (0, [], len(every))


def is_working(pid):
    """Whether the process is a worker of a chain: the system may have given its number to another."""
    try:
        process = psutil.Process(pid)
        path = process.environ().get("PYTHONPATH", "")
        return process.status() != psutil.STATUS_ZOMBIE and path.startswith(str(FAKES))
    except psutil.Error:
        return False
