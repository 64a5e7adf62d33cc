"""A chain of killed nodes, and of commands killed with them: no finished cell is lost, none is measured
again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from highway_bench.cell import Cell
from highway_bench.results import Store
from tests.cluster.check_losses import SCRIPT, is_working, kill, lines_in, wait_until
from tests.faults.scale import NODES, note
from tests.faults.test_kills import begun_in, stored_in

MakeCell = Callable[..., Cell]
CELLS_A_NODE = 160  # of up to a third of a second each: a new node takes some seconds to begin one


def test_a_chain_of_killed_nodes(
    cluster: Any, cell: MakeCell, log: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    chance = random.Random(18)
    script, lines, path = (tmp_path / name for name in ("script.py", "cells.jsonl", "store.sqlite"))
    script.write_text(SCRIPT, encoding="utf-8")
    cells = [
        cell(task="fake-span", seed=number) if number % 2 else cell("short", task="fake-trials", seed=number)
        for number in range(CELLS_A_NODE * NODES)
    ]
    cells = [one.but(depth=1 + one.seed // 8) for one in cells]  # groups of four fake trials
    lines.write_text("\n".join(json.dumps(asdict(one)) for one in cells), encoding="utf-8")
    before: set[str] = set()
    kills: Counter[str] = Counter()
    code, lost = None, 0
    again: list[str] = []  # cells that were stored before a start and began once more after it
    while code != 0:
        earlier = len(begun_in(log))
        process = subprocess.Popen(
            [sys.executable, str(script), str(path), str(lines)], env=environment, stderr=subprocess.DEVNULL
        )
        while kills["node"] < NODES and process.poll() is None:
            name = f"victim{kills['node']}"
            victim = cluster.add_node(num_cpus=2, env_vars={"HIGHWAY_BENCH_TEST_NODE": name})
            begun = f" {name} "
            wait_until(lambda: process.poll() is not None or any(begun in line for line in lines_in(log)))  # noqa: B023
            if process.poll() is not None:
                cluster.remove_node(victim)
                break
            kill(victim)
            cluster.worker_nodes.discard(victim)
            kills["node"] += 1
            if chance.random() < 0.3:  # and the command with it
                process.send_signal(signal.SIGKILL)
                kills["command"] += 1
                break
        code = process.wait(1200)
        if code != 0:  # Ray may need a moment to stop the jobs of a command that was killed
            pids = {int(line.split()[-1]) for line in lines_in(log) if line.startswith("plain")}
            wait_until(lambda: not any(is_working(pid) for pid in pids))  # noqa: B023
        now = stored_in(path)
        lost += len(before - now)
        again += [one for one in begun_in(log)[earlier:] if one in before]
        before = now
        assert code <= 1, f"the command ended with {code}"
    assert kills["node"] == NODES
    with Store(path) as store:
        assert store.problems() == []
        rows = store.rows(metric="loss")
    assert Counter(row["status"] for row in rows) == {"ok": len(cells)}
    note("nodes", **kills, cells=len(cells), lost=lost, measured_again=len(again))
    assert (lost, again) == (0, [])
