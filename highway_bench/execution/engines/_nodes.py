"""Nodes of a Ray cluster: Ray with our settings and its errors in one line, which nodes run cells, and what runs there.

That is a node's facts, and a job in a worker process of the local engine. No cell runs in a process of Ray's: a crash,
a time-out or a lack of memory costs the same cells, with the same status and message, as on one machine. Ray notices
only that its own process or the node is gone, and runs the job elsewhere.
"""

from __future__ import annotations

import json
import os
import platform
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from highway_bench.data.batches import copy_of, write_copy
from highway_bench.errors import BadInput
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.job import Ended, Job
from highway_bench.provenance import Identity, identity
from highway_bench.provenance.machine import torch_version
from highway_bench.training.checkpoint import SUFFIX, UNFINISHED, headers_in

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
SAVED = 1.0  # seconds between two reads of a node's folder of checkpoints

_engine: LocalEngine | None = None  # of this process: Ray reuses it, and its worker then need not import torch again


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
    ask = ray.remote(facts)
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
            said = json.loads(ray.get(answer, timeout=0))
        except ray.exceptions.RayError as error:
            if name not in living_nodes():
                continue
            raise BadInput(f"node {address} cannot run jobs: {first_line(error)}") from error
        identities = {device: Identity(*one) for device, one in said["identities"].items()}
        resources = cores_of(node), gpus_of(node), memory_of(node)
        nodes.append(ClusterNode(name, address, *resources, said["python"], identities))
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


def facts(has_gpu: bool) -> str:
    """JSON with this node's version of Python, and its identity for each device."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # Ray hides the GPUs from a task that reserves none
    devices = ("cpu", "cuda") if has_gpu else ("cpu",)
    return json.dumps(
        {"python": platform.python_version(), "identities": {device: identity(device) for device in devices}}
    )


def measure(line: str, checkpoints: Any, modules: frozenset[str], copies: Mapping[str, Any]) -> Iterator[str]:
    """Measure the cells of a job. The first item is empty and says that the job has begun. Every further one has the
    result of one cell, as a line of JSON; the last one has the results of all cells.

    After a loss Ray calls this again and leaves out as many items as it has delivered. Cells may then end in another
    order, but the number of items is the same, and the last one is complete. ``checkpoints`` are ``CheckpointFiles``
    in another process, or ``None``. ``modules`` are those that any job of the command runs through. ``copies`` are the
    user's data by the hash of their items, each as a list of one reference.
    """
    job = Job.of_line(line)
    yield ""
    for items, (copy,) in copies.items():
        if not copy_of(items).is_file():
            content = copy.future().result()  # Ray lends the cores of a task that waits in ray.get to another one
            write_copy(items, partial(Path.write_bytes, data=content))
    lines: list[str] = []
    with node_folder(job.keys, checkpoints) as folder, ExitStack() as on_error:
        on_error.callback(_stop)
        for event in _local_engine(modules).run([replace(job, checkpoints=folder)]):
            if isinstance(event, Ended):
                index = job.keys.index(event.job.keys[event.result.index])  # that of a cell run by itself is 0
                lines.append(replace(event.result, index=index).line())
                if len(lines) < len(job.keys):
                    yield lines[-1]
        if job.cells[0].device == "cpu":  # a worker that waits for the next job would keep its GPU's memory
            on_error.pop_all()
    yield "".join(lines)


def _local_engine(modules: frozenset[str]) -> LocalEngine:
    global _engine
    if _engine is None:
        _engine = LocalEngine(1)
    _engine.expected |= modules
    return _engine


def _stop() -> None:
    global _engine
    if _engine is not None:
        _engine.__exit__(None, None, None)
        _engine = None


class CheckpointFiles:
    """The checkpoints next to the store, in a process on the machine of the command: a lost node loses its disk."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def of(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The files with the state of any of the cells ``keys``, by name."""
        found = (path for path, cells in headers_in(self._folder) if not cells.isdisjoint(keys))
        return {path.name: path.read_bytes() for path in found}

    def save(self, name: str, content: bytes) -> None:
        """Write one file. A kill during the write leaves the old file. Raises ``OSError``."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / Path(name).name
        unfinished = path.with_suffix(UNFINISHED)
        unfinished.write_bytes(content)
        unfinished.replace(path)


@contextmanager
def node_folder(keys: Sequence[str], checkpoints: Any) -> Iterator[Path | None]:
    """A folder on this node with the checkpoints of the cells ``keys``. What is saved in it goes to ``checkpoints``."""
    if checkpoints is None:
        yield None
        return
    import ray

    with tempfile.TemporaryDirectory(prefix="highway-bench-") as name:
        folder, sent = Path(name), {}
        # By futures: Ray lends the cores of a task that waits in ray.get to another one.
        for file, content in checkpoints.of.remote(keys).future().result().items():
            (folder / file).write_bytes(content)
            sent[file] = (folder / file).stat().st_mtime_ns
        ended = threading.Event()

        def send() -> None:
            for path in folder.glob(f"*{SUFFIX}"):
                try:
                    saved = path.stat().st_mtime_ns
                    if sent.get(path.name) != saved:
                        checkpoints.save.remote(path.name, path.read_bytes()).future().result()
                        sent[path.name] = saved
                except (OSError, ray.exceptions.RayError):  # its cell has just ended, or no space: the cell goes on
                    continue

        def watch() -> None:
            while not ended.wait(SAVED):
                send()

        watching = threading.Thread(target=watch, name="checkpoints", daemon=True)
        watching.start()
        try:
            yield folder
        finally:
            ended.set()
            watching.join()
            send()
