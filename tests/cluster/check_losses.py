"""A node is killed in mid-run, or the command is: every cell is done, none twice, and training goes on where it was."""

import os
import signal
import subprocess
from collections import Counter

import pytest

from highway_bench.provenance.machine import identity
from highway_bench.results import Store
from tests.cluster.conftest import PLUGINS, add_node, kill, losing
from tests.execution.processes import is_alive, run_apart, wait_until, workers_in, write_cells

NO_NODE = {"the cluster has lost every node that could run it"}


def words_in(log):
    return [line.split() for line in log.read_text(encoding="utf-8").splitlines()]


def messages(store, **filters):
    return {row["message"] for row in store.rows(status="crashed", **filters)}


def test_a_lost_node_costs_no_cell(cluster, run, store, cell, log):
    lost = add_node(cluster, "lost")
    cells = [cell(task="fake-span", seed=seed) for seed in range(60)]
    cells += [cell("short", task="fake-trials", depth=1 + seed // 8, seed=seed) for seed in range(64)]
    with losing(cluster, lambda: lost, lambda: sum("lost" in words for words in words_in(log)) >= 5):
        summary = run(cells)
    assert (summary.counts, summary.measured) == ({"ok": len(cells)}, len(cells))
    digests = Counter(row["digest"] for row in store.rows(metric="loss"))
    assert (len(digests), set(digests.values())) == (len(cells), {1})
    assert store.problems() == []


def test_a_node_that_is_lost_just_before_a_command(cluster, run, cell):
    """Ray does not know yet that it is lost, and lets it be asked."""
    kill(cluster, add_node(cluster, "lost"))
    assert run([cell(seed=seed) for seed in range(8)]).counts == {"ok": 8}


def test_cells_too_large_for_the_nodes_that_are_left_fail(cluster, run, store, cell, log):
    """Ray would wait for another node of so many cores."""
    lost = add_node(cluster, "lost", num_cpus=4)
    with losing(cluster, lambda: lost, lambda: len(words_in(log)) >= 3):
        counts = run([cell(task="fake-span", seed=seed).but(threads=4) for seed in range(12)]).counts
    assert counts["ok"] >= 2
    assert counts["ok"] + counts["crashed"] == 12
    assert messages(store) == NO_NODE


def test_training_goes_on_after_its_node_is_lost(cluster, run, store, cell, log):
    """The checkpoints are on the disk of the command's machine, and go to the next node."""
    nodes = {name: add_node(cluster, name, num_cpus=1) for name in ("c", "d")}
    folder = store.path.with_name(f"{store.path.name}.checkpoints")

    def one_that_trains():
        return nodes.pop(next(name for _, _, name in words_in(log) if name in nodes))

    with losing(cluster, one_that_trains, lambda: len(list(folder.glob("*.checkpoint"))) == 6):
        assert run([cell(task="fake-training", seed=seed) for seed in range(6)]).counts == {"ok": 6}
    for node in nodes.values():
        cluster.remove_node(node)
    *first, again = (int(step) for _, step, _ in words_in(log))
    assert first == [0] * 6
    assert again > 0
    steps = sorted(row["value"] for row in store.rows(metric="loss"))
    assert steps == [steps[-1] - again, *[steps[-1]] * 5]
    assert not folder.exists()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_the_same_command_goes_on_after_it_was_stopped(cluster, run, cell, log, tmp_path, sent):
    path, lines = tmp_path / "command.sqlite", tmp_path / "cells.jsonl"
    cells = [cell("short", seed=seed) for seed in range(60)] + [cell(task="fake-training", seed=7)]
    write_cells(lines, cells)
    process = run_apart(path, lines, engine="ray", plugins=PLUGINS, stderr=subprocess.PIPE)
    wait_until(lambda: process.poll() is not None or any(path.parent.glob("*.checkpoints/*.checkpoint")))
    os.kill(process.pid, sent)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == (-sent if sent == signal.SIGKILL else 130), errors
    with Store(path) as store:
        before = {digest for digest, status in store.digests().items() if status == "ok"}
    wait_until(lambda: not any(map(is_alive, workers_in(log))))
    with Store(path) as store:
        summary = run(cells, store=store)
        assert summary.counts == {"ok": len(cells)}
        assert summary.stored == len(before) < len(cells)
        assert store.problems() == []
        assert len(store.rows(metric="loss")) == len(cells)
    starts = [int(words[1]) for words in words_in(log) if words[0] == "from"]
    assert starts[0] == 0 < starts[-1]


def test_cells_whose_every_node_is_lost_fail(cluster, run, store, cell, log):
    """Ray would wait for the nodes that a timed cell names. The other cells run on."""
    every = os.sched_getaffinity(0)
    if len(every) < 2:
        pytest.skip("a machine of fewer cores needs two here")
    os.sched_setaffinity(0, {min(every)})
    try:
        lost = add_node(cluster, "lost", num_cpus=1)
        cells = [cell(task="fake-timed-span", depth=depth) for depth in range(12)]
        cells += [cell("short", seed=seed) for seed in range(12)]
        identity.cache_clear()  # this process is the lost node's machine now
        # A cell writes its line before its result is sent: of three, two are stored.
        with losing(cluster, lambda: lost, lambda: sum("lost" in words for words in words_in(log)) >= 3):
            counts = run(cells).counts
    finally:
        os.sched_setaffinity(0, every)
        identity.cache_clear()
    assert counts["ok"] >= 14
    assert counts["ok"] + counts["crashed"] == 24
    assert messages(store, task="fake-timed-span") == NO_NODE
