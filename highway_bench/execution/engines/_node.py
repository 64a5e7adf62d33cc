"""Node: what runs on a node of a Ray cluster. Its facts, and a job in a worker process of the local engine.

No cell runs in a process of Ray's: a crash, a time-out or a lack of memory costs the same cells, with the same status
and message, as on one machine. Ray notices only that its own process or the node is gone, and runs the job elsewhere.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from highway_bench.data.batches import copy_of, write_copy
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.job import Ended, Job
from highway_bench.provenance import identity
from highway_bench.training.checkpoint import SUFFIX, UNFINISHED, headers_in

SAVED = 1.0  # seconds between two reads of a node's folder of checkpoints

_engine: LocalEngine | None = None  # of this process: Ray reuses it, and its worker then need not import torch again


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
