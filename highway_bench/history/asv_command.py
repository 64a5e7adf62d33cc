"""Run an asv command on this checkout, with its own configuration and one thread."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import highway_bench
from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.history.paths import Paths

SOURCE = Path(highway_bench.__file__).resolve().parents[1]


class AsvFailed(HighwayBenchError):
    """asv itself failed, which is neither a regression nor a lack of values."""

    exit_status = 4


def asv(
    paths: Paths,
    command: str,
    arguments: Sequence[str],
    changes: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    quiet: bool = False,
) -> int:
    """Run an asv command with this checkout's configuration and ``changes``, and return its exit status.

    ``quiet`` prints asv's output only if it fails. Raises ``BadInput`` if asv is not installed.
    """
    if importlib.util.find_spec("asv") is None:
        raise BadInput("asv is not installed: pip install highway-bench[history]")
    path = paths.configured(name or command, **(changes or {}))
    done = subprocess.run(
        [sys.executable, "-m", "asv", command, "--config", str(path), *arguments],
        check=False,
        env=_environment({"HIGHWAY_BENCH_HISTORY_ROOT": str(paths.root), **(environment or {})}),
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
    )
    if quiet and done.returncode:
        sys.stderr.write(done.stdout)
    return done.returncode


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    before = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": str(SOURCE) + (os.pathsep + before if before else ""),
        **more,
    }
