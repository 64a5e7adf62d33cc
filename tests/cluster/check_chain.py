"""A chain of killed nodes, and of commands killed with them: no finished cell is lost, none is measured
again."""

import random
from collections import Counter

from highway_bench.results import Store
from tests.cluster.conftest import PLUGINS, add_node, kill
from tests.execution.processes import begun_in, is_alive, run_apart, stored_in, wait_until, workers_in, write_cells
from tests.faults.scale import NODES, note

CELLS_A_NODE = 160  # of up to a third of a second each: a new node takes some seconds to begin one


def test_a_chain_of_killed_nodes(cluster, cell, log, tmp_path):
    chance = random.Random(18)
    lines, path = tmp_path / "cells.jsonl", tmp_path / "store.sqlite"
    cells = [
        cell(task="fake-span", seed=number) if number % 2 else cell("short", task="fake-trials", seed=number)
        for number in range(CELLS_A_NODE * NODES)
    ]
    cells = [one.but(depth=1 + one.seed // 8) for one in cells]  # groups of four fake trials
    write_cells(lines, cells)
    before = set()
    kills = Counter()
    code, lost = None, 0
    again = []  # cells that were stored before a start and began once more after it
    while code != 0:
        earlier = len(begun_in(log))
        process = run_apart(path, lines, engine="ray", plugins=PLUGINS)
        while kills["node"] < NODES and process.poll() is None:
            name = f"victim{kills['node']}"
            victim = add_node(cluster, name)
            wait_until(lambda: process.poll() is not None or f" {name} " in log.read_text("utf-8"))  # noqa: B023
            if process.poll() is not None:
                cluster.remove_node(victim)
                break
            kill(cluster, victim)
            kills["node"] += 1
            if chance.random() < 0.3:  # and the command with it
                process.kill()
                kills["command"] += 1
                break
        code = process.wait(1200)
        if code != 0:  # Ray may need a moment to stop the jobs of a command that was killed
            wait_until(lambda: not any(map(is_alive, workers_in(log))))
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
