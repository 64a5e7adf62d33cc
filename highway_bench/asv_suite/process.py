"""Start the process that measures a package (see ``worker``), and ask it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

WORKER = Path(__file__).with_name("worker.py")


class CellLacking(Exception):
    """The measured package does not have the requested cell."""


class RequestFailed(RuntimeError):
    """A request failed in the process, or the process died; the message is the reason."""


class PackageProcess:
    """A process that measures the package that ``path`` finds first, on one of the cores that this process may use.

    ``core`` counts these cores, and starts again after the last. The process starts with the first request, and with
    the first one after it died. Use this as a context: the process ends with it. ``worker`` is the file that it runs.
    Where a ``tree`` is given, requests fail unless something was imported from it.
    """

    worker = WORKER

    def __init__(self, path: Sequence[str], device: str, core: int, tree: Path | None = None) -> None:
        self.path, self.device, self.core, self.tree = path, device, core, tree
        self.process: subprocess.Popen[str] | None = None

    def ask(self, request: str, **fields: Any) -> Any:
        """The value of a request, as ``requests.Requests`` describes it.

        Raises ``CellLacking`` where the package does not have the cell, ``RequestFailed`` for any other failure.
        """
        process = self.process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps({"request": request, **fields}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if not line:
            status = process.wait()
            self._stop()
            raise RequestFailed(f"the measuring process ended with status {status}; its output is above")
        try:
            response: dict[str, Any] = json.loads(line)
        except ValueError:
            raise RequestFailed(f"the measuring process gave no response, but {line[:80]!r}") from None
        if "lacking" in response:
            raise CellLacking(response["lacking"])
        if "failed" in response:
            raise RequestFailed(response["failed"])
        return response["value"]

    def __enter__(self) -> PackageProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def _start(self) -> subprocess.Popen[str]:
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        measured = {"PYTHONPATH": os.pathsep.join(self.path), "HIGHWAY_BENCH_SUITE_DEVICE": self.device}
        if self.tree is not None:
            measured["HIGHWAY_BENCH_SUITE_TREE"] = str(self.tree)
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(self.worker)],  # -P: the worker's own folder must not be on the path
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one_thread, **measured},
        )
        if self.device == "cpu" and hasattr(os, "sched_setaffinity"):
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(self.process.pid, {cores[self.core % len(cores)]})
        return self.process

    def _stop(self) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # it died before it read a request
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # in a step whose time is no longer needed
            self.process.kill()
            self.process.wait()
        self.process = None
