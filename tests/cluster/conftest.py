"""Fixtures of the checks on a cluster: its nodes, cells of the fake tasks, and a store.

Nothing here imports Ray before a check requests a cluster.
"""

import threading
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from highway_bench.execution.runner import run_cells
from tests.execution.conftest import cell, imported, log, store
from tests.execution.processes import FAKES, wait_until

__all__ = ["cell", "log", "store"]

PLUGINS = ("runner_fakes", "cluster_fakes")
TOKEN = "the-token-of-the-checks-" + "0" * 24
HEAD = {"num_cpus": 0, "include_dashboard": False}  # only the command runs on its node
NODE_NAME = "HIGHWAY_BENCH_TEST_NODE"


@pytest.fixture(scope="session")
def ray_environment(tmp_path_factory):
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
def cluster(ray_environment):
    """A cluster of three nodes; two of them run cells, on two cores each."""
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args=HEAD)
    for name in "ab":
        add_node(started, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", started.address)
        yield started
    started.shutdown()


@pytest.fixture
def fakes(monkeypatch):
    """The plug-ins with the fake tasks."""
    for folder in (FAKES, Path(__file__).parent):
        monkeypatch.syspath_prepend(str(folder))
    with imported(*PLUGINS):
        yield PLUGINS


@pytest.fixture
def run(cluster, fakes, store):
    """Runs cells of the fake tasks on the cluster, into the store."""
    return lambda cells, **options: run_cells(cells, **{"store": store, "plugins": fakes, "engine": "ray"} | options)


def add_node(cluster, name, num_cpus=2):
    """Add a node, whose cells log this name."""
    return cluster.add_node(num_cpus=num_cpus, env_vars={NODE_NAME: name})


def kill(cluster, node):
    """Kill a node with all that runs on it, as a power cut does."""
    processes = [one.process for several in node.all_processes.values() for one in several]
    tree = [child for one in processes for child in psutil.Process(one.pid).children(recursive=True)]
    for process in (*processes, *tree):
        process.kill()
    cluster.worker_nodes.discard(node)


@contextmanager
def losing(cluster, which, when):
    """Within it, a node is killed as soon as ``when`` holds."""

    def end_it():
        wait_until(when)
        kill(cluster, which())

    thread = threading.Thread(target=end_it)
    thread.start()
    yield
    thread.join()
