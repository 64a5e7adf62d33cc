"""What a job reserves on a cluster, and what Ray's errors say in one line: without Ray, on nodes that are described."""

import re
from types import SimpleNamespace

import pytest

from highway_bench.execution.engines import ray
from highway_bench.execution.engines._nodes import ClusterNode, first_line
from highway_bench.execution.engines.ray import Placement, RayEngine
from highway_bench.provenance import identity
from tests.inline_engine import cell_of, job_of

GIB = 2**30


@pytest.fixture
def engine():
    """On a node of 2 cores and 8 GiB, and one of 4 cores and 4 GiB."""
    one = RayEngine()
    one._nodes = [
        ClusterNode(f"node-{cores}", "10.0.0.1", cores, 0, memory, "3.11.0", {"cpu": identity()})
        for cores, memory in ((2, 8 * GIB), (4, 4 * GIB))
    ]
    return one


def job(size=0, **changes):
    return job_of(cell_of("trainability"), bytes=size, **changes)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (job(), Placement(1, memory=GIB // 2)),  # the process and its libraries
        (job(3 * GIB), Placement(1, memory=3 * GIB + GIB // 2)),
        (job(100 * GIB), Placement(1, memory=8 * GIB)),  # more than every node: a worker decides
        (job(100 * GIB, threads=4), Placement(4, memory=4 * GIB)),
    ],
)
def test_a_job_reserves_the_memory_that_its_task_estimates(engine, of, expected):
    assert engine._placement(of) == expected


def test_a_job_leaves_no_events_on_the_first_node(engine, monkeypatch):
    """Ray would keep them in memory, for a dashboard that is not there."""
    given = {}

    def options(**options):
        given.update(options)
        return SimpleNamespace(remote=lambda *sent: "stream")

    monkeypatch.setattr(ray, "imported_ray", lambda: None)
    engine._measure = SimpleNamespace(options=options)
    engine._submit(job(), Placement(1))
    assert given["enable_task_events"] is False


def test_a_job_that_runs_alone_reserves_a_node(engine):
    assert engine._placement(job(GIB, alone=True)) == Placement(2, nodes=("node-2",))


def test_a_placement_is_possible_where_a_node_has_all_that_it_reserves():
    nodes = {"a": {"Resources": {"CPU": 2.0, "memory": 8.0 * GIB}}}
    assert Placement(2, memory=8 * GIB).is_possible(nodes)
    assert not Placement(2, memory=9 * GIB).is_possible(nodes)
    assert not Placement(3).is_possible(nodes)
    assert not Placement(1, gpus=0.25).is_possible(nodes)
    assert not Placement(1, nodes=("b",)).is_possible(nodes)


MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.51.1
    Python: 3.12.7
This process on 10.0.0.2 was started with:
    Ray: 2.60.0
    Python: 3.11.13
"""


class NoMessageError(Exception):
    """An error of a library."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError(MISMATCH), r"Ray 2\.51\.1 with Python 3\.12\.7, .* Ray 2\.60\.0 with Python 3\.11\.13"),
        (RuntimeError("\n  the node died\nat its end"), "^the node died$"),
        (NoMessageError(), "^NoMessageError$"),
    ],
)
def test_an_error_in_one_line(error, line):
    assert re.search(line, first_line(error))
    assert first_line(SimpleNamespace(cause=error)) == first_line(error)
