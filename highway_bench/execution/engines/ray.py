"""Ray engine: runs jobs on the nodes of a Ray cluster. Placement, back-pressure and retries after a loss are Ray's.

A job is a Ray task that reserves its cores and memory, or its share of a GPU; one that must run alone reserves a whole
node. The results of its cells stream back as they end (see ``_nodes``). Jobs and results travel as JSON; the package
and the modules of plug-ins go to the nodes as ``py_modules``, so that a node needs the libraries only, and no
network.

Two things are ours. ``run`` submits at most ``WAITING`` jobs a core, or ``workers`` jobs, of each placement: Ray holds
what is submitted in this process, whose memory would grow with the cells of a sweep. ``_give_up`` ends the cells that
no living node can run: Ray would wait without end for a node that has what they reserve.
"""

from __future__ import annotations

import logging
import math
import os
import re
import socket
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from highway_bench.by_value import PICKLED
from highway_bench.data.batches import copy_of
from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.execution.engines import register_engine
from highway_bench.execution.engines._nodes import (
    NODE,
    POLL,
    CheckpointFiles,
    ClusterNode,
    asked_nodes,
    cores_of,
    first_line,
    gpus_of,
    imported_ray,
    living_nodes,
    measure,
    memory_of,
)
from highway_bench.execution.engines._pool import WorkerKind, gpu_share
from highway_bench.execution.job import Began, CellResult, Ended, Job
from highway_bench.provenance import identity
from highway_bench.provenance.free_memory import PROCESS_BYTES
from highway_bench.results.schema import Status
from highway_bench.source import PACKAGE, find_module
from highway_bench.tasks.base import tasks

SHARED = ("HIGHWAY_BENCH_DATA",)  # variables of this process that workers must have too
REACHED = 10.0  # seconds in which the cluster's port must answer
STOPPING = 10.0  # seconds for the last checkpoints of cancelled jobs
NO_NODE = "the cluster has lost every node that could run it"
MEMORY_STEP = 2**28  # bytes
WAITING = 2  # jobs a core that Ray has at a time, so that none waits for this process
# Ray's dashboard shows the events of tasks; the first node would keep 7 KiB of them in memory for each job.
NO_EVENTS: dict[str, Any] = {"enable_task_events": False}


@dataclass(frozen=True)
class Placement:
    """What a job reserves, and the ids of the nodes that it may run on; empty for any."""

    cores: int
    gpus: float = 0.0
    memory: int = 0
    nodes: tuple[str, ...] = ()

    def is_possible(self, nodes: Mapping[str, Mapping[str, Any]]) -> bool:
        """Whether one of ``nodes``, as Ray describes them by their ids, has what is reserved."""
        return any(
            cores_of(node) >= self.cores and gpus_of(node) >= self.gpus and memory_of(node) >= self.memory
            for name, node in nodes.items()
            if not self.nodes or name in self.nodes
        )

    @property
    def options(self) -> dict[str, Any]:
        """As options of a Ray task."""
        where = {"label_selector": {NODE: f"in({','.join(self.nodes)})"}} if self.nodes else {}
        return {"num_cpus": self.cores, "num_gpus": self.gpus, "memory": self.memory, **where}


@dataclass
class Submitted:
    """A job that Ray has, the results that came and were not yielded yet, and the indices of the cells that ended."""

    job: Job
    placement: Placement
    began: bool = False
    lines: deque[str] = field(default_factory=deque)
    ended: set[int] = field(default_factory=set)

    def results(self) -> Iterator[Ended]:
        """The results that came. One is yielded again if the caller did not resume after it."""
        while self.lines:
            result = CellResult.of_line(self.lines[0])
            if result.index not in self.ended:
                yield Ended(self.job, result)
                self.ended.add(result.index)
            self.lines.popleft()


@register_engine("ray")
class RayEngine:
    """Runs jobs on the cluster at ``address`` (HOST:PORT), else at RAY_ADDRESS, else on the one of this machine.

    By default each core of the cluster runs a job; ``workers`` limits the jobs that reserve the same. The command must
    be given on a machine of the cluster: cells whose values depend on the hardware are measured on nodes of the same
    machine, with the same torch.
    """

    def __init__(self, workers: int | None = None, *, address: str | None = None) -> None:
        self._given = workers
        self._address = address or os.environ.get("RAY_ADDRESS") or "auto"
        self._modules = {module_path(PACKAGE)}
        self._sources: frozenset[str] = frozenset()  # modules that jobs run through
        self._nodes: list[ClusterNode] = []
        self._submitted: dict[Any, Submitted] = {}
        self._measure: Any = None
        self._checkpoints: dict[Path, Any] = {}
        self._copies: dict[str, Any] = {}  # of the user's data that Ray has, by the hash of their items
        self._opened = ExitStack()

    @property
    def workers(self) -> int:
        """Jobs of one core that run in parallel."""
        return self._given or sum(node.cores for node in self._nodes) or 1

    def __enter__(self) -> Self:
        """Connect, and ask every node. Raises ``BadInput`` for a cluster that cannot be used.

        Ray prints notes, such as the loss of a node, to stdout, which has the command's results. Until this engine is
        closed, they go to stderr.
        """
        with ExitStack() as opened:
            opened.enter_context(redirect_stdout(sys.stderr))
            self._connect()
            opened.callback(imported_ray().shutdown)
            self._nodes = asked_nodes()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        with self._opened:
            self._cancel()

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        """Run ``jobs``; those that need a whole node go to Ray first. Every cell of every job ends exactly once.

        Raises ``BadInput`` where no node can run a job, and ``HighwayBenchError`` where a node's workers are unusable.
        """
        ray = imported_ray()
        queues: dict[Placement, deque[Job]] = {}
        for job in sorted(jobs, key=lambda job: (not job.alone, WorkerKind.of(job))):  # a worker runs one kind
            queues.setdefault(self._placement(job), deque()).append(job)
            self._sources |= job.sources.keys()
        self._send_modules(job for queue in queues.values() for job in queue)
        most = self._given or WAITING * self.workers
        checked = time.monotonic()
        while self._submitted or any(queues.values()):
            sizes = Counter(submitted.placement for submitted in self._submitted.values())
            for placement, queue in queues.items():
                while queue and sizes[placement] < most:
                    self._submit(queue.popleft(), placement)
                    sizes[placement] += 1
            streams = list(self._submitted)
            ready, _ = ray.wait(streams, timeout=POLL)
            if ready:  # and all others that have results too
                ready, _ = ray.wait(streams, num_returns=len(streams), timeout=0)
            for stream in ready:
                placement = self._submitted[stream].placement
                queues[placement].extendleft(reversed((yield from self._receive(stream))))
            if time.monotonic() - checked > POLL:
                yield from self._give_up()
                checked = time.monotonic()

    def drain(self) -> Iterator[Ended]:
        """After an interrupt: yield the cells that ended but were not yielded yet, and stop the workers."""
        ray = imported_ray()
        for stream, submitted in self._submitted.items():
            with suppress(ray.exceptions.RayError):
                while ray.wait([stream], timeout=0)[0] and (item := next(stream, None)) is not None:
                    submitted.lines.extend(lines_of(ray.get(item)))
            yield from submitted.results()
        self._cancel()

    def _connect(self) -> None:
        """Connect to the cluster, and send ``_modules`` to it."""
        ray = imported_ray()
        where = "of this machine" if self._address == "auto" else f"at {self._address}"
        if self._address != "auto":
            host, _, port = self._address.rpartition(":")
            if not host or not re.fullmatch("[0-9]{1,5}", port) or "/" in host:
                raise BadInput(
                    f"{self._address!r} is no address of a cluster: write HOST:PORT, as `ray start` prints it"
                )
            try:
                socket.create_connection((host, int(port)), timeout=REACHED).close()
            except (OSError, OverflowError) as error:
                raise BadInput(f"no connection to the Ray cluster {where}: {error}") from error
        if ray.is_initialized():
            raise BadInput("this process is connected to a Ray cluster already: call ray.shutdown() first")
        try:
            ray.init(
                self._address,
                runtime_env={
                    "py_modules": sorted(map(str, self._modules)),
                    "excludes": ["__pycache__"],
                    "env_vars": {name: os.environ[name] for name in SHARED if name in os.environ},
                },
                log_to_driver=False,  # stdout has the command's results; Ray has the logs of its processes
                logging_level=logging.ERROR,
            )
        except ConnectionError as error:  # the reason is in a line that Ray itself prints
            raise BadInput(
                f"no connection to the Ray cluster {where}: is it running, with this user's token?"
            ) from error
        except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise BadInput(f"no connection to the Ray cluster {where}: {first_line(error)}") from error
        self._measure = ray.remote(measure)  # once: Ray sends every such function to the cluster
        self._checkpoints.clear()
        self._copies.clear()

    def _send_modules(self, jobs: Iterable[Job]) -> None:
        """Send the modules that ``jobs`` run through. Ray takes them only with a new connection."""
        names = {
            name.partition(".")[0]
            for job in jobs
            for name in (*job.sources, *job.plugins)
            if not name.startswith(PICKLED)
        }
        modules = self._modules | set(map(module_path, names))
        if modules != self._modules:
            self._modules = modules
            imported_ray().shutdown()
            self._connect()

    def _placement(self, job: Job) -> Placement:
        """What ``job`` reserves, and where it may run."""
        device, task = job.cells[0].device, tasks.get(job.task)
        nodes = [node for node in self._nodes if node.gpus or device == "cpu"]
        if not nodes:
            raise BadInput("no node of the cluster has a GPU that Ray may use")
        if task.meter:
            here = identity(device)
            nodes = [node for node in nodes if node.identities[device] == here]
            if not nodes:
                raise BadInput(
                    f"task {job.task!r} depends on the machine, and no node matches this machine ({here.machine} with "
                    f"torch {here.torch}): give the command on a machine like the nodes"
                )
        if job.alone:
            cores, _ = Counter(node.cores for node in nodes).most_common(1)[0]
            nodes = [node for node in nodes if node.cores == cores]
        else:
            cores = min(job.threads, max(node.cores for node in nodes))
            nodes = [node for node in nodes if node.cores >= cores]
        memory = 0
        if not job.alone and device == "cpu":  # rounded, so that few placements differ; a worker checks each cell
            rounded = MEMORY_STEP * math.ceil((job.bytes + PROCESS_BYTES) / MEMORY_STEP)
            memory = min(rounded, max(node.memory for node in nodes))
        named = tuple(node.id for node in nodes) if task.meter or job.alone else ()
        return Placement(cores, gpu_share(job), memory, named)

    def _submit(self, job: Job, placement: Placement) -> None:
        ray = imported_ray()
        checkpoints = None
        if job.checkpoints is not None:
            if job.checkpoints not in self._checkpoints:
                here = {NODE: ray.get_runtime_context().get_node_id()}
                actor = ray.remote(CheckpointFiles).options(num_cpus=0, label_selector=here, **NO_EVENTS)
                self._checkpoints[job.checkpoints] = actor.remote(str(job.checkpoints))
            checkpoints = self._checkpoints[job.checkpoints]
        needed = copies_of(job)
        for items in needed - self._copies.keys():
            self._copies[items] = ray.put(copy_of(items).read_bytes())
        copies = {items: [self._copies[items]] for items in needed}
        measure = self._measure.options(**placement.options, **NO_EVENTS)
        stream = measure.remote(job.line(), checkpoints, self._sources, copies)
        self._submitted[stream] = Submitted(job, placement)

    def _receive(self, stream: Any) -> Generator[Began | Ended, None, list[Job]]:
        """Yield what came of a job; return jobs for cells that must run one by one, as the job was lost too often."""
        ray = imported_ray()
        submitted = self._submitted[stream]
        try:
            item = next(stream, None)
            if item is not None:
                submitted.lines.extend(lines_of(ray.get(item)))
        except (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError) as error:
            del self._submitted[stream]
            raise HighwayBenchError(f"a node cannot run jobs: {first_line(error)}") from error
        except ray.exceptions.RayError as error:
            del self._submitted[stream]
            if len(submitted.job.cells) > 1:
                return submitted.job.singles_left(submitted.ended)
            status = Status.OOM if isinstance(error, ray.exceptions.OutOfMemoryError) else Status.CRASHED
            nowhere = isinstance(error, ray.exceptions.TaskUnschedulableError)
            yield from lost(submitted, status, NO_NODE if nowhere else first_line(error))
            return []
        if not submitted.began:
            submitted.began = True
            yield Began(submitted.job)
        yield from submitted.results()
        if item is None:
            del self._submitted[stream]
            yield from lost(submitted, Status.FAILED, "the node gave no result")
        return []

    def _give_up(self) -> Iterator[Ended]:
        """End the cells that only nodes could run which the cluster has lost: Ray would wait for them without end."""
        ray = imported_ray()
        alive = living_nodes()
        for stream, submitted in list(self._submitted.items()):
            if not submitted.placement.is_possible(alive):
                ray.cancel(stream)
                del self._submitted[stream]
                yield from lost(submitted, Status.CRASHED, NO_NODE)

    def _cancel(self) -> None:
        """Stop what runs, with time for the last checkpoints."""
        ray = imported_ray()
        for stream in self._submitted:
            ray.cancel(stream)
        ends = [stream.completed() for stream in self._submitted]
        if ends:
            ray.wait(ends, num_returns=len(ends), timeout=STOPPING)
        self._submitted.clear()


def module_path(name: str) -> Path:
    """The folder or the file of the top-level module ``name``; raises ``BadInput`` for one that cannot be sent."""
    source = find_module(name)
    if source is None or source.path.suffix != ".py":
        raise BadInput(f"module {name!r} cannot be sent to a cluster: make it a .py file, or a folder with __init__.py")
    return source.path.parent if source.is_package else source.path


def lost(submitted: Submitted, status: Status, message: str) -> Iterator[Ended]:
    """The end of each cell without a result."""
    for index in range(len(submitted.job.cells)):
        if index not in submitted.ended:
            yield Ended(submitted.job, CellResult(index=index, status=status, message=message))
            submitted.ended.add(index)


def lines_of(text: str) -> list[str]:
    """The results in an item of a stream."""
    return [line for line in text.split("\n") if line]


def copies_of(job: Job) -> set[str]:
    """The hashes of the user's data that the cells of ``job`` read from a copy on this machine."""
    named = {str(cell.recipe["dataset"]["items"]) for cell in job.cells if cell.dataset == "batches"}
    return {items for items in named if copy_of(items).is_file()}
