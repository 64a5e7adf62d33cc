"""A chain of kills at random moments, each resume killed again: no finished cell is lost, none is doubled.

``HIGHWAY_BENCH_KILLS`` is the number of kills; 6 by default.
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

KILLS = int(os.environ.get("HIGHWAY_BENCH_KILLS", "6"))
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


def cells(log: Path) -> list[Cell]:
    shared = {"block": "plain", "family": "dense", "width": 8, "nominal_width": 8}
    recipe = {"log": str(log), "do": "short"}
    # Half of them in groups, as timed cells and populations are.
    return [
        Cell(task=("fake", "fake-trials")[number % 2], depth=1 + number // 8, seed=number, recipe=recipe, **shared)
        for number in range(CELLS_A_KILL * KILLS)
    ]


def stored(path: Path) -> dict[str, str]:
    """The status of each stored cell by its digest."""
    try:
        with Store(path, read_only=True) as store:
            return dict(store.digests())
    except BadInput:  # no file, or no tables yet
        return {}


def victims(process: psutil.Process, what: str) -> list[psutil.Process]:
    """The processes to kill. A run that has no worker yet is killed itself."""
    children = process.children(recursive=True)
    workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
    if what == "group":
        return [process, *children]
    return workers[:1] if what == "worker" and workers else [process]


@pytest.mark.slow
def test_a_chain_of_kills(tmp_path: Path) -> None:
    chance = random.Random(18)
    path, log, script, lines = (tmp_path / name for name in ("store.sqlite", "log.txt", "script.py", "cells.jsonl"))
    script.write_text(SCRIPT, encoding="utf-8")
    every = cells(log)
    lines.write_text("\n".join(json.dumps(asdict(cell)) for cell in every), encoding="utf-8")
    log.touch()
    before: dict[str, str] = {}
    kills: Counter[str] = Counter()
    code = None
    while code != 0:
        process = subprocess.Popen(
            [sys.executable, str(script), str(path), str(lines)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(FAKES), *filter(None, sys.path)])},
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )
        begun, delay = len(log.read_text().splitlines()), chance.uniform(0.0, 0.8)
        while kills.total() < KILLS and process.poll() is None:
            if len(log.read_text().splitlines()) > begun:  # cells are being measured
                time.sleep(delay)
                what = chance.choice(["driver", "worker", "group"])
                try:
                    for victim in victims(psutil.Process(process.pid), what):
                        victim.send_signal(signal.SIGKILL)
                except psutil.NoSuchProcess:
                    break  # it had just ended
                kills[what] += 1
                if what != "worker":
                    break
                delay = chance.uniform(0.0, 0.8)
            time.sleep(0.02)
        code = process.wait(600)
        now = stored(path)
        assert {digest for digest, status in before.items() if status == "ok"} <= now.keys()  # nothing is lost
        before = now
        if code != 0 and kills.total() >= KILLS and code > 1:
            pytest.fail(f"the run ended with {code}")
    assert kills.total() == KILLS
    with Store(path) as store:
        assert store.problems() == []
        rows = store.rows(metric="loss")
    failed = [row for row in rows if row["status"] != "ok"]
    assert len(rows) == len({row["digest"] for row in rows}) == len(every)  # none is doubled
    assert {row["status"] for row in failed} <= {"crashed", "oom"}  # of a kill of its worker in the last run
    deadline = time.monotonic() + 60
    pids = {int(line.split()[-1]) for line in log.read_text().splitlines()}
    while any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in pids):
        assert time.monotonic() < deadline, "a worker outlives its runner"
        time.sleep(0.1)
    print(f"{kills.total()} kills ({dict(kills)}), {len(every)} cells, {len(failed)} crashed, none lost")  # noqa: T201
