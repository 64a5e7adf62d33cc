"""A node is killed in mid-run, or the command is: every cell is done, none twice, and training goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil
import pytest

from highway_bench.cell import Cell
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

MakeCell = Callable[..., Cell]
SCRIPT = """
import json
import sys

from highway_bench.cell import Cell
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

with Store(sys.argv[1]) as store, open(sys.argv[2], encoding="utf-8") as lines:
    cells = [Cell(**json.loads(line)) for line in lines]
    run_cells(cells, store, plugins=["runner_fakes", "cluster_fakes"], engine="ray")
"""


def wait_until(condition: Callable[[], object], seconds: float = 300.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lines_in(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines()


def kill(node: Any) -> None:
    """Kill a node with all that runs on it, as a power cut does."""
    processes = [one.process for several in node.all_processes.values() for one in several]
    tree = [child for one in processes for child in psutil.Process(one.pid).children(recursive=True)]
    for process in (*processes, *tree):
        process.kill()


def meanwhile(action: Callable[[], None]) -> threading.Thread:
    """Run ``action`` in a thread, while this one measures."""
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_lost_node_costs_no_cell(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: MakeCell, log: Path
) -> None:
    lost = cluster.add_node(num_cpus=2, env_vars={"HIGHWAY_BENCH_TEST_NODE": "lost"})
    cells = [cell(task="fake-span", seed=seed) for seed in range(60)]
    cells += [cell("short", task="fake-trials", depth=1 + seed // 8, seed=seed) for seed in range(64)]

    def end_it() -> None:
        wait_until(lambda: sum(" lost " in line for line in lines_in(log)) >= 5)
        kill(lost)

    killing = meanwhile(end_it)
    summary = run_cells(cells, store, plugins=fakes, engine="ray")
    killing.join()
    cluster.worker_nodes.discard(lost)
    assert summary.counts == {"ok": len(cells)}
    assert summary.measured == len(cells)
    digests = Counter(row["digest"] for row in store.rows(metric="loss"))
    assert len(digests) == len(cells)
    assert set(digests.values()) == {1}
    assert store.problems() == []


def test_a_node_that_is_lost_just_before_a_command(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: MakeCell
) -> None:
    """Ray does not know yet that it is lost, and lets it be asked."""
    lost = cluster.add_node(num_cpus=2, env_vars={"HIGHWAY_BENCH_TEST_NODE": "lost"})
    kill(lost)
    cells = [cell(seed=seed) for seed in range(8)]
    assert run_cells(cells, store, plugins=fakes, engine="ray").counts == {"ok": 8}
    cluster.worker_nodes.discard(lost)


def test_cells_too_large_for_the_nodes_that_are_left_fail(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: MakeCell, log: Path
) -> None:
    """Ray would wait for another node of so many cores."""
    lost = cluster.add_node(num_cpus=4, env_vars={"HIGHWAY_BENCH_TEST_NODE": "lost"})

    def end_it() -> None:
        wait_until(lambda: len(lines_in(log)) >= 3)
        kill(lost)

    killing = meanwhile(end_it)
    cells = [cell(task="fake-span", seed=seed).but(threads=4) for seed in range(12)]
    counts = run_cells(cells, store, plugins=fakes, engine="ray").counts
    killing.join()
    cluster.worker_nodes.discard(lost)
    assert counts["ok"] >= 2
    assert counts["ok"] + counts["crashed"] == 12
    messages = {row["message"] for row in store.rows() if row["status"] == "crashed"}
    assert messages == {"the cluster has lost every node that could run it"}


def test_training_goes_on_after_its_node_is_lost(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: MakeCell, log: Path
) -> None:
    """The checkpoints are on the disk of the command's machine, and go to the next node."""
    nodes = {name: cluster.add_node(num_cpus=1, env_vars={"HIGHWAY_BENCH_TEST_NODE": name}) for name in ("c", "d")}
    folder = store.path.with_name(f"{store.path.name}.checkpoints")
    killed: list[str] = []

    def end_it() -> None:
        wait_until(lambda: len(list(folder.glob("*.checkpoint"))) == 6)
        name = next(line.split()[2] for line in lines_in(log) if line.split()[2] in nodes)
        killed.append(name)
        kill(nodes[name])

    killing = meanwhile(end_it)
    cells = [cell(task="fake-training", seed=seed) for seed in range(6)]
    assert run_cells(cells, store, plugins=fakes, engine="ray").counts == {"ok": 6}
    killing.join()
    for name, node in nodes.items():
        cluster.worker_nodes.discard(node) if name in killed else cluster.remove_node(node)
    starts = [int(line.split()[1]) for line in lines_in(log)]
    assert starts[:6] == [0] * 6
    assert len(starts) == 7
    assert starts[6] > 0
    steps = sorted(row["value"] for row in store.rows(metric="loss"))
    assert steps == [steps[-1] - starts[6], *[steps[-1]] * 5]
    assert not folder.exists()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_the_same_command_goes_on_after_it_was_stopped(
    cluster: Any,
    fakes: tuple[str, ...],
    cell: MakeCell,
    log: Path,
    tmp_path: Path,
    environment: dict[str, str],
    sent: signal.Signals,
) -> None:
    script, lines, path = (tmp_path / name for name in ("script.py", "cells.jsonl", "store.sqlite"))
    script.write_text(SCRIPT, encoding="utf-8")
    cells = [cell("short", seed=seed) for seed in range(60)] + [cell(task="fake-training", seed=7)]
    lines.write_text("\n".join(json.dumps(asdict(one)) for one in cells), encoding="utf-8")
    command = [sys.executable, str(script), str(path), str(lines)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: process.poll() is not None or any(path.parent.glob("*.checkpoints/*.checkpoint")))
    os.kill(process.pid, sent)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == (-sent if sent == signal.SIGKILL else 1), errors
    with Store(path) as store:
        before = {digest for digest, status in store.digests().items() if status == "ok"}
    pids = {int(line.split()[-1]) for line in lines_in(log) if line.startswith("plain")}
    wait_until(lambda: not any(is_working(pid) for pid in pids))
    with Store(path) as store:
        summary = run_cells(cells, store, plugins=fakes, engine="ray")
        assert summary.counts == {"ok": len(cells)}
        assert summary.stored == len(before) < len(cells)
        assert store.problems() == []
        assert len(store.rows(metric="loss")) == len(cells)
    starts = [int(line.split()[1]) for line in lines_in(log) if line.startswith("from")]
    assert starts[0] == 0 < starts[-1]


def is_working(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_cells_whose_every_node_is_lost_fail(
    cluster: Any, fakes: tuple[str, ...], store: Store, cell: MakeCell, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would wait for the nodes that a timed cell names. The other cells run on."""
    every = os.sched_getaffinity(0)
    if len(every) < 2:
        pytest.skip("a machine of fewer cores needs two here")
    os.sched_setaffinity(0, {min(every)})
    try:
        lost = cluster.add_node(num_cpus=1, env_vars={"HIGHWAY_BENCH_TEST_NODE": "lost"})

        def end_it() -> None:
            # A cell writes its line before its result is sent: of three, two are stored.
            wait_until(lambda: sum("fake-timed-span lost" in line for line in lines_in(log)) >= 3)
            kill(lost)

        killing = meanwhile(end_it)
        cells = [cell(task="fake-timed-span", depth=depth) for depth in range(12)]
        cells += [cell("short", seed=seed) for seed in range(12)]
        from highway_bench.provenance.machine import identity

        identity.cache_clear()  # this process is the lost node's machine now
        counts = run_cells(cells, store, plugins=fakes, engine="ray").counts
        killing.join()
        cluster.worker_nodes.discard(lost)
    finally:
        os.sched_setaffinity(0, every)
        identity.cache_clear()
    assert counts["ok"] >= 14
    assert counts["ok"] + counts["crashed"] == 24
    messages = {row["message"] for row in store.rows(task="fake-timed-span") if row["status"] == "crashed"}
    assert messages == {"the cluster has lost every node that could run it"}
