"""Ray, with our settings and its errors in one line, and the nodes of its cluster that run cells, with their resources,
machine and versions."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.execution.engines import _node
from highway_bench.provenance import Identity
from highway_bench.provenance.machine import torch_version

NODE = "ray.io/node-id"  # Ray's own label of every node
ANSWER = 300.0  # seconds in which a node must give its facts: importing from a busy disk takes minutes
POLL = 1.0  # seconds between looks at the cluster
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",  # whoever reaches a port of a cluster without a token can run code on it
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": "3",  # Ray would repeat a job that is too large for the nodes without end
    "RAY_gcs_server_port_wait_time_s": "1",  # and try for ten minutes to reach a cluster that has ended
}
VERSIONS = re.compile(r"Version mismatch:.*?Ray: (\S+)\s+Python: (\S+).*?Ray: (\S+)\s+Python: (\S+)", re.DOTALL)


def imported_ray() -> Any:
    """The module ``ray``, with token authentication on and usage reports off unless the environment says otherwise.

    Raises ``BadInput`` where it is not installed.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise BadInput("engine 'ray' needs Ray: install highway-bench[cluster]") from error
    return ray


def first_line(error: BaseException) -> str:
    """The message of Ray's ``error``, or of the exception on the node, in one line.

    Ray gives the versions of the cluster and of this process in lines of their own.
    """
    cause = getattr(error, "cause", None) or error
    if found := VERSIONS.search(str(cause)):
        ray, python, own_ray, own_python = found.groups()
        return (
            f"it has Ray {ray} with Python {python}, and this command Ray {own_ray} with Python {own_python}: "
            "install the same"
        )
    text = next((line.strip() for line in str(cause).splitlines() if line.strip()), "")
    return text or type(cause).__name__


@dataclass(frozen=True)
class ClusterNode:
    """A node that runs cells: its id and address in Ray, the cores, GPUs and bytes that Ray may use, and what it is."""

    id: str
    address: str
    cores: int
    gpus: int
    memory: int
    python: str
    identities: Mapping[str, Identity]

    def mismatch(self) -> str | None:
        """What differs from this process's Python and torch; a build of torch for another device does not."""
        there, here = (
            f"Python {python.rpartition('.')[0]} with torch {torch.partition('+')[0]}"
            for python, torch in (
                (self.python, self.identities["cpu"].torch),
                (platform.python_version(), torch_version()),
            )
        )
        return None if there == here else f"node {self.address} has {there}, and this command {here}: install the same"


def living_nodes() -> dict[str, Mapping[str, Any]]:
    """What Ray says of each node of the cluster that is not lost, by the node's id."""
    return {node["NodeID"]: node for node in imported_ray().nodes() if node["Alive"]}


def asked_nodes() -> list[ClusterNode]:
    """The nodes of the cluster that run cells; those that are lost before they answer are left out.

    Raises ``BadInput`` where one has other versions, or cannot answer.
    """
    ray = imported_ray()
    ask = ray.remote(_node.facts)
    asked = {
        ask.options(num_cpus=0, label_selector={NODE: name}).remote(gpus_of(node) > 0): (name, node)
        for name, node in living_nodes().items()
        if cores_of(node)
    }
    waiting, deadline = list(asked), time.monotonic() + ANSWER
    while waiting and time.monotonic() < deadline:
        _, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=POLL)
        alive = living_nodes()
        waiting = [answer for answer in waiting if asked[answer][0] in alive]
    nodes = []
    for answer, (name, node) in asked.items():
        address = node["NodeManagerAddress"]
        try:
            facts = json.loads(ray.get(answer, timeout=0))
        except ray.exceptions.RayError as error:
            if name not in living_nodes():
                continue
            raise BadInput(f"node {address} cannot run jobs: {first_line(error)}") from error
        identities = {device: Identity(*one) for device, one in facts["identities"].items()}
        resources = cores_of(node), gpus_of(node), memory_of(node)
        nodes.append(ClusterNode(name, address, *resources, facts["python"], identities))
    for mismatch in filter(None, (node.mismatch() for node in nodes)):
        raise BadInput(mismatch)
    if not nodes:
        raise BadInput("no node of the Ray cluster has a core for jobs")
    return nodes


def cores_of(node: Mapping[str, Any]) -> int:
    """The cores that Ray may use of a node."""
    return int(node["Resources"].get("CPU", 0))


def gpus_of(node: Mapping[str, Any]) -> int:
    """The GPUs that Ray may use of a node."""
    return int(node["Resources"].get("GPU", 0))


def memory_of(node: Mapping[str, Any]) -> int:
    """The bytes of memory that Ray may give to tasks of a node."""
    return int(node["Resources"].get("memory", 0))
