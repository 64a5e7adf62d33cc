"""The Ray engine gives what the local one gives: the same rows, losses bit for bit, from the command's own source."""

import os
from collections import Counter
from pathlib import Path

import pytest
import torch

import highway_bench as hb
from highway_bench.execution.engines.ray import RayEngine
from highway_bench.execution.job import Ended
from highway_bench.plan.grid import Grid, Sizes
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import Profile
from highway_bench.plan.selection import Selection
from highway_bench.provenance.machine import cores, identity
from highway_bench.results import Store
from tests.cluster.conftest import add_node
from tests.execution.processes import wait_until
from tests.inline_engine import job_of

OF_A_RUN = ("run_id", "time_utc")  # columns that differ from run to run
ENDS = ["measure", "raise", "kill", "exit", "leave", "not-finite", "skip", "measure"]
LAYER = """
import torch
from torch import nn

def helper(x):
    return torch.tanh(x)

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        return helper(self.map(x))
"""
RECIPE = {"optimiser": "sgd", "rate": 0.1, "momentum": 0.9, "decay": 1.0, "steps": 5, "threshold": 0.1}


def rows_in(store):
    rows = [{name: value for name, value in row.items() if name not in OF_A_RUN} for row in store.rows()]
    return sorted(rows, key=lambda row: (row["digest"], row["metric"], row["index"], row["axis"]))


def test_the_same_rows_as_with_the_local_engine(run, store, cell, tmp_path):
    """Cells by themselves and in groups, timed ones, a search, and every way to fail."""
    cells = [cell(do, task=task, seed=seed) for task in ("fake", "fake-trials") for seed, do in enumerate(ENDS)]
    cells += [cell(task="fake-timing", depth=depth, seed=seed) for depth in (1, 2) for seed in (0, 1)]
    cells += [cell(task="fake-search", losses=[[0.1, 3.0], [0.3, 2.0], [1.0, 5.0]]), cell("measure", timeout=0.0)]
    summary = run(cells, workers=3)
    with Store(tmp_path / "local.sqlite") as local:
        expected = run(cells, store=local, engine="local", workers=2)
        assert rows_in(store) == rows_in(local)
    assert (summary.counts, summary.measured) == (expected.counts, expected.measured)
    assert run(cells).stored == expected.counts["ok"] + 2  # skipped ones


def test_losses_are_the_same_bit_for_bit(cluster, store, tmp_path):
    plan = Plan.of("smoke", Selection.of("trainability", family="dense", block=["plain", "highway", "pre-norm"]))
    there = plan.run(store, engine="ray").rows
    here = plan.run(tmp_path / "local.sqlite").rows
    assert len(there) > 10
    columns = ["digest", "metric", "axis", "index", "value", "status", "samples", "machine", "torch"]
    of_loss = [frame[~frame["metric"].str.contains("second")] for frame in (there, here)]
    there, here = (frame[columns].sort_values(columns[:4]).reset_index(drop=True) for frame in of_loss)
    assert there.equals(here)


def test_a_layer_that_no_module_defines_has_the_losses_that_it_has_here(cluster, tmp_path):
    scope = {"__name__": "__main__"}
    exec(LAYER, scope)
    sizes = Sizes({"vector": 8}, {"vector": 16})
    grid = Grid(task="trainability", families=("dense",), on_cpu=sizes, dataset="digits", recipe=RECIPE, depths=(2,))
    words = {"family": scope["Layer"], "block": "residual", "workers": 1}
    there, here = (
        hb.run(profile=Profile("tiny", "", (grid,)), engine=engine, store=tmp_path / engine, **words).rows
        for engine in ("ray", "local")
    )
    losses = [rows.loc[rows["metric"] == "loss", "value"].tolist() for rows in (there, here)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 5


def test_nodes_run_the_source_of_the_command(run, cell, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # workers on this machine also find what is in the command's folder
    run([cell(task="fake-source")])
    package, plugin = map(Path, log.read_text().splitlines())
    assert (package.parent.name, plugin.name) == ("highway_bench", "cluster_fakes.py")
    assert all("py_modules_files" in path.parts for path in (package, plugin))


def test_a_cell_that_is_timed_has_its_node_to_itself(run, cell, log):
    cells = [cell(task="fake-span", seed=seed) for seed in range(24)]
    cells += [cell(task="fake-timed-span", depth=depth) for depth in range(6)]
    assert run(cells).counts == {"ok": 30}
    spans = [
        (task, node, float(began), float(ended))
        for task, node, began, ended, *_ in map(str.split, log.read_text().splitlines())
    ]
    assert len(spans) == 30
    assert {node for _, node, _, _ in spans} == {"a", "b"}
    for task, node, began, ended in spans:
        if task == "fake-timed-span":
            assert [one for one in spans if one[1] == node and one[2] < ended and one[3] > began] == [
                (task, node, began, ended)
            ]


@pytest.mark.skipif(cores() < 2, reason="a machine of fewer cores needs two here")
def test_what_depends_on_the_machine_runs_on_nodes_of_this_one(cluster, run, store, cell, log):
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})  # the node inherits it, and is another machine: one of fewer cores
    try:
        other = add_node(cluster, "other", num_cpus=4)
    finally:
        os.sched_setaffinity(0, every)
    try:
        cells = [cell(task="fake-timed-span", depth=depth) for depth in range(4)]
        cells += [cell(task="fake-span", seed=seed) for seed in range(24)]
        assert run(cells).counts == {"ok": 28}
    finally:
        cluster.remove_node(other)
    nodes = Counter(tuple(line.split()[:2]) for line in log.read_text().splitlines())
    assert nodes["fake-span", "other"] > 0
    assert nodes["fake-timed-span", "other"] == 0
    assert {row["machine"] for row in store.rows(task="fake-timed-span")} == {identity().machine}


def test_drain_gives_the_cells_that_ended_and_stops_the_others(cluster, fakes, cell, log, tmp_path):
    hold = tmp_path / "hold"
    hold.touch()
    cells = [cell(task="fake-trials", seed=seed, **({} if seed < 2 else {"hold": str(hold)})) for seed in range(4)]
    with RayEngine() as engine:
        events = engine.run([job_of(*cells, plugins=fakes)])
        first = next(event for event in events if isinstance(event, Ended))
        wait_until(lambda: len(log.read_text().splitlines()) >= 3)  # the third has begun
        left = [event.result.index for event in engine.drain()]
    assert first.result.index == 0
    assert left in ([0], [0, 1])  # the first was not resumed after; the second may not have come by then


def test_nodes_get_the_copy_of_the_users_data(cluster, store, tmp_path, monkeypatch):
    """The command's cache is a folder that no node has."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    x = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    chosen = Selection.of("trainability", family="dense", block="plain", depth=2, data=(x, (x[:, 0] > 0).long()),
                          recipe={"rate": 0.1, "steps": 20}, seed=0)  # fmt: skip
    result = Plan.of("smoke", chosen).run(store, engine="ray")
    assert result.failures == []
    assert result.rows["metric"].eq("final_loss").sum() == 1
