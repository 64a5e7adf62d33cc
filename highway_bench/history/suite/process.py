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

from ...os_names import usable_cores

WORKER = Path(__file__).with_name("worker.py")


class CellLacking(Exception):
    """The measured package does not have the requested cell."""


class RequestFailed(RuntimeError):
    """A request failed in the process, or the process died; the message is the reason."""


class PackageProcess:
    """A process that measures the package that ``path`` finds first, on one of the cores that this process may use.

    ``core`` counts these cores, and starts again after the last. Use this as a context: the process starts and ends
    with it, and starts again with the first request after it died. ``worker`` is the file that it runs. Where a
    ``tree`` is given, requests fail unless something was imported from it.
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
        self._start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def _start(self) -> subprocess.Popen[str]:
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        measured = {"PYTHONPATH": os.pathsep.join(self.path), "HIGHWAY_BENCH_SUITE_DEVICE": self.device}
        if self.tree is not None:
            measured["HIGHWAY_BENCH_SUITE_TREE"] = str(self.tree)
        if self.device == "cpu":
            cores = usable_cores()
            measured["HIGHWAY_BENCH_SUITE_CORE"] = str(cores[self.core % len(cores)])
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(self.worker)],  # -P: the worker's own folder must not be on the path
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one_thread, **measured},
        )
        return self.process

    def _stop(self) -> None:
        if self.process is None:
            return
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()  # it has nothing to save, and torch takes a second to end by itself
        self.process.wait()
        with suppress(BrokenPipeError):  # it died before it read a request
            self.process.stdin.close()
        self.process.stdout.close()
        self.process = None
