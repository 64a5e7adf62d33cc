"""A chain of kills at random moments, each resume killed again: no finished cell is lost, none is measured again.

The chain's folder has all of its state, so the next call can go on with it (see ``scale``): the cells grow with the
kills, and each call ends with a run that nobody kills.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.results import Store
from tests.faults.scale import CHAIN, KILLS, note

CELLS_A_KILL = 60  # of a twentieth of a second each: enough for every kill to meet a run that measures
FAKES = Path(__file__).parents[1] / "execution"

SCRIPT = """
import json
import sys

from highway_bench.cell import Cell
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

if __name__ == "__main__":
    with Store(sys.argv[1]) as store, open(sys.argv[2], encoding="utf-8") as lines:
        cells = [Cell(**json.loads(line)) for line in lines]
        run_cells(cells, store, workers=2, plugins=["runner_fakes"])
"""


class Chain:
    """The chain in a folder: its store, its log, and the kills so far by what was killed."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.store, self.log, self.script, self.lines, self._state = (
            folder / name for name in ("store.sqlite", "log.txt", "script.py", "cells.jsonl", "kills.json")
        )
        self.log.touch()
        self.script.write_text(SCRIPT, encoding="utf-8")
        known = json.loads(self._state.read_text(encoding="utf-8")) if self._state.exists() else {}
        self.kills: Counter[str] = Counter(known)

    def cells(self, kills: int) -> list[Cell]:
        """The cells of a chain of so many kills; half of them in groups, as timed cells and populations are."""
        shared = {"block": "plain", "family": "dense", "width": 8, "nominal_width": 8}
        recipe = {"log": str(self.log), "do": "short"}
        return [
            Cell(task=("fake", "fake-trials")[number % 2], depth=1 + number // 8, seed=number, recipe=recipe, **shared)
            for number in range(CELLS_A_KILL * kills)
        ]

    def count(self, what: str) -> None:
        """Note one kill."""
        self.kills[what] += 1
        self._state.write_text(json.dumps(self.kills), encoding="utf-8")

    def stored(self) -> set[str]:
        """The cells that are stored with a result, as the log names them."""
        return stored_in(self.store)

    def begun(self) -> list[str]:
        """The cells that have begun, as often as they did."""
        return begun_in(self.log)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the command."""
        return subprocess.Popen(
            [sys.executable, str(self.script), str(self.store), str(self.lines)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(FAKES), *filter(None, sys.path)])},
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )


def stored_in(path: Path) -> set[str]:
    """The cells of the fake tasks that the store has with a result, as their log names them: by depth and seed."""
    try:
        with Store(path, read_only=True) as store:
            return {f"{row['depth']} {row['seed']}" for row in store.rows(metric="loss", status="ok")}
    except BadInput:  # no file, or no tables yet
        return set()


def begun_in(log: Path) -> list[str]:
    """The cells in the log of the fake tasks, by depth and seed; those of ``fake-span`` have them at the line's end."""
    lines = (line.split() for line in log.read_text(encoding="utf-8").splitlines())
    return [" ".join(words[1:3] if words[0] == "plain" else words[-2:]) for words in lines]


def victims(process: psutil.Process, what: str) -> list[psutil.Process]:
    """The processes to kill. A run that has no worker yet is killed itself."""
    children = process.children(recursive=True)
    workers = [child for child in children if is_worker(child)]
    if what == "group":
        return [process, *children]
    return workers[:1] if what == "worker" and workers else [process]


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a worker that has not ended."""
    try:
        return "spawn_main" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def run_and_kill(chain: Chain, chance: random.Random, most: int) -> int | None:
    """Run the command once, with kills until the chain has ``most``; returns its exit status."""
    begun = len(chain.begun())
    process, delay = chain.start(), chance.uniform(0.0, 0.8)
    while chain.kills.total() < most and process.poll() is None:
        if len(chain.begun()) > begun:  # cells are being measured
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
def test_a_chain_of_kills(tmp_path: Path) -> None:
    chain = Chain(Path(CHAIN) if CHAIN else tmp_path)
    most = chain.kills.total() + KILLS
    chance = random.Random(most)
    every = chain.cells(most)
    chain.lines.write_text("\n".join(json.dumps(asdict(cell)) for cell in every), encoding="utf-8")
    before, code = chain.stored(), None
    lost, again = 0, []  # cells that were stored before a start: gone after it, or measured once more
    while code != 0:
        earlier = len(chain.begun())
        code = run_and_kill(chain, chance, most)
        now = chain.stored()
        lost += len(before - now)
        again += [cell for cell in chain.begun()[earlier:] if cell in before]
        before = now
        assert code <= 1 or chain.kills.total() < most, f"the run ended with {code}"
    assert chain.kills.total() == most
    with Store(chain.store) as store:
        assert store.problems() == []
        rows = store.rows(metric="loss")
    failed = [row for row in rows if row["status"] != "ok"]
    assert {row["status"] for row in failed} <= {"crashed", "oom"}  # of a kill of its worker in the last run
    deadline = time.monotonic() + 60
    pids = {int(line.split()[-1]) for line in chain.log.read_text().splitlines()[-200:]}
    while any(is_working(pid) for pid in pids):
        assert time.monotonic() < deadline, "a worker outlives its runner"
        time.sleep(0.1)
    figures = {"cells": len(every), "crashed": len(failed), "lost": lost, "measured_again": len(again)}
    note("kills", **chain.kills, total=most, **figures)
    assert (lost, again, len(rows)) == (0, [], len(every))


def is_working(pid: int) -> bool:
    """Whether the process is a worker of a chain: the system may have given its number to another."""
    try:
        process = psutil.Process(pid)
        path = process.environ().get("PYTHONPATH", "")
        return process.status() != psutil.STATUS_ZOMBIE and path.startswith(str(FAKES))
    except psutil.Error:
        return False
