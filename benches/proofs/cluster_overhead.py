"""What an engine costs a cell: a run of many idle cells, by the local engine and by a Ray cluster of three nodes.

    nox -s proof -- cluster-overhead --cells 10000 --engine local ray

The cluster runs on this machine, so that the figure has its whole cost. For each engine, one line of JSON: the
milliseconds a cell from the first result to the last, the seconds before the first one, and the resident memory after a
tenth of the cells and after all of them. The memory is that of this process, the command, and of two processes of the
cluster's first node: ``gcs_server``, the state of the cluster, and ``raylet``, the node's scheduler. In a network that
others can reach, run it in a namespace that has only the loopback device:

    unshare -n python tests/cluster/loopback.py "$(command -v python)" -m benches.proofs.cluster_overhead
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from highway_bench.cell import Cell
from highway_bench.execution.progress import Event, Finished
from highway_bench.execution.runner import run_cells
from highway_bench.results import Store

PLUGIN = "idle_task"
NODES, CORES = 3, 2
TOKEN = "the-token-of-this-benchmark-" + "0" * 24


@contextmanager
def cluster() -> Iterator[dict[str, psutil.Process]]:
    """A Ray cluster of three nodes on this machine, with a core for each job; yields the first node's processes."""
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={"num_cpus": CORES, "include_dashboard": False})
    for _ in range(NODES - 1):
        started.add_node(num_cpus=CORES)
    os.environ["RAY_ADDRESS"] = started.address
    try:
        yield {
            name: psutil.Process(started.head_node.all_processes[name][0].process.pid)
            for name in ("gcs_server", "raylet")
        }
    finally:
        started.shutdown()


def overhead(engine: str, cells: int, head: Mapping[str, psutil.Process]) -> dict[str, object]:
    """The cost of ``cells`` idle cells: times in seconds and milliseconds, memory in MiB; also that of ``head``."""
    ends: list[float] = []
    memory: list[dict[str, float]] = []
    processes = {"command": psutil.Process(), **head}

    def note(event: Event) -> None:
        if isinstance(event, Finished):
            ends.append(time.perf_counter())
            if len(ends) in (max(1, cells // 10), cells):
                memory.append({name: one.memory_info().rss / 2**20 for name, one in processes.items()})

    every = [
        Cell(task="idle", block="plain", family="dense", depth=1, width=1, nominal_width=1, seed=seed)
        for seed in range(cells)
    ]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.sqlite") as store:
        counts = run_cells(every, store, plugins=[PLUGIN], engine=engine, on_event=note, command=["bench"]).counts
    if counts != {"ok": cells}:
        sys.exit(f"not every cell ended well: {counts}")
    return {
        "engine": engine,
        "cells": cells,
        "milliseconds_a_cell": 1e3 * (ends[-1] - ends[0]) / (cells - 1),
        "seconds_before_the_first": ends[0] - began,
        "mib_after_a_tenth": memory[0],
        "mib_after_all": memory[-1],
    }


def main() -> None:
    """Print the cost for each engine."""
    parser = argparse.ArgumentParser(description="The cost of an engine for each cell.")
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--engine", nargs="+", choices=["local", "ray"], default=["local", "ray"])
    given = parser.parse_args()
    sys.path.append(str(Path(__file__).parents[1]))  # of the plug-in; workers have it too
    for engine in given.engine:
        if engine == "local":
            print(json.dumps(overhead(engine, given.cells, {})), flush=True)  # noqa: T201
        else:
            with cluster() as head:
                print(json.dumps(overhead(engine, given.cells, head)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
