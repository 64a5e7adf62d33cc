"""What the command line's tests share: a working directory of their own, and two ways to call a command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from highway_bench.cli import app

Invoke = Callable[..., Result]
Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with no data folder, a cache of its own, and no data loaded by earlier tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # commands put it on the path; this takes it off again
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    sentiment = sys.modules.get("highway_bench.data.sentiment")
    if sentiment is not None:
        sentiment._texts.cache_clear()
        sentiment._vocabulary.cache_clear()
        sentiment._load.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def invoke(here: Path) -> Invoke:
    """Call a command in this process."""
    return lambda *words: CliRunner().invoke(app, list(map(str, words)), prog_name="highway-bench")


@pytest.fixture
def shell(here: Path) -> Shell:
    """Call a command as a shell would."""

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "highway_bench", *map(str, words)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            env=os.environ | {"PYTHONPATH": package_path()},
        )

    return call


def package_path() -> str:
    """The path of a process that finds this package, wherever its tests were started."""
    return os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
