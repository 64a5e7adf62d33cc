"""Fixtures of the checks on a cluster: its nodes, cells of the fake tasks, and a store.

Nothing here imports Ray before a check requests a cluster.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.results import Store

FAKES = ("runner_fakes", "cluster_fakes")
FOLDERS = (Path(__file__).parents[1] / "execution", Path(__file__).parent)
TOKEN = "the-token-of-the-checks-" + "0" * 24
HEAD = {"num_cpus": 0, "include_dashboard": False}  # only the command runs on its node
NODE_NAME = "HIGHWAY_BENCH_TEST_NODE"


@pytest.fixture(scope="session")
def ray_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A token, and no monitor that kills processes when others fill this machine's memory."""
    variables = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_memory_monitor_refresh_ms": "0",
        "RAY_worker_niceness": "0",  # Ray's own processes would get no core from other tests
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def cluster(ray_environment: None) -> Iterator[Any]:
    """A cluster of three nodes; two of them run cells, on two cores each."""
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args=HEAD)
    for name in "ab":
        started.add_node(num_cpus=2, env_vars={NODE_NAME: name})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", started.address)
        yield started
    started.shutdown()


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """The plug-ins with the fake tasks."""
    for folder in FOLDERS:
        monkeypatch.syspath_prepend(str(folder))
    from highway_bench.tasks import tasks

    for name in FAKES:
        importlib.import_module(name)
    yield FAKES
    for name in tasks.names():
        if tasks.module_of(name) in FAKES:
            tasks.unregister(name)
    for name in FAKES:
        sys.modules.pop(name, None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite") as opened:
        yield opened


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.touch()
    return path


@pytest.fixture
def cell(log: Path) -> Callable[..., Cell]:
    """Builds a cell of a fake task; further keywords are words of its recipe."""

    def make(do: str = "measure", *, task: str = "fake", depth: int = 1, seed: int = 0, **recipe: Any) -> Cell:
        shared: dict[str, Any] = {"block": "plain", "family": "dense", "width": 8, "nominal_width": 8}
        return Cell(task=task, depth=depth, seed=seed, recipe={"do": do, "log": str(log), **recipe}, **shared)

    return make


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """For a command in another process, which finds this checkout and the fakes but not through its folder."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, FOLDERS), *filter(None, sys.path)])}
