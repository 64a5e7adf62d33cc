"""A system that is not Linux, imitated: its names, its processor, and none of Linux's files."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import highway_bench
from highway_bench.results import Store
from tests import absent_names
from tests.absent_names import ABSENT, WINDOWS

PACKAGE = Path(highway_bench.__file__).parent
Run = Callable[..., "subprocess.CompletedProcess[str]"]
CELLS = ("memory", "throughput", "--profile", "smoke", "--family", "dense", "--block", "plain", "--phase", "train-step")
LOCK = """
import os
from pathlib import Path
from highway_bench.provenance.lock import holder, is_held
from highway_bench.results import Store
path = Path("store.sqlite.lock")
with Store("store.sqlite"):
    assert is_held(path)
    assert holder(path) == str(os.getpid())
assert not is_held(path)
"""


@pytest.fixture
def imitated(tmp_path: Path) -> Callable[..., Run]:
    """A function that runs Python on a system, with ``package`` for this package's folder."""

    def imitated(system: str, package: Path = PACKAGE) -> Run:
        shutil.copyfile(absent_names.__file__, tmp_path / "sitecustomize.py")
        sysctl = tmp_path / "sysctl"
        sysctl.write_text("#!/bin/sh\necho Apple M3 Pro\n")
        sysctl.chmod(0o755)
        environment = os.environ | {
            "IMITATED": system,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PYTHONPATH": f"{tmp_path}:{package.parent}",
        }
        return lambda *words: subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
        )

    return imitated


@pytest.mark.parametrize(
    ("system", "machine", "shown"),
    [
        ("Windows", "cpu-intel-core-i7-8700-f6m158-", "Intel Core I7 8700 (family 6), "),
        ("Darwin", "cpu-apple-m3-pro-", "Apple M3 Pro, "),
    ],
)
def test_all_that_a_first_visit_runs(
    system: str, machine: str, shown: str, imitated: Callable[..., Run], tmp_path: Path
) -> None:
    python = imitated(system)
    for words in (
        ("-m", "highway_bench", "--help"),
        ("-m", "highway_bench", "list"),
        ("-m", "highway_bench", "run", *CELLS, "--workers", "1", "--strict", "--store", "store.sqlite"),
        ("-c", LOCK),
        ("-m", "highway_bench", "status", "--store", "store.sqlite"),
        ("-m", "highway_bench", "report", "--store", "store.sqlite", "--out", "page"),
    ):
        done = python(*words)
        assert done.returncode == 0, done.stderr
    with Store(tmp_path / "store.sqlite", read_only=True) as store:
        assert {row["machine"].startswith(machine) for row in store.rows()} == {True}
    assert shown in (tmp_path / "page/index.html").read_text()


def test_a_planted_name_stops_the_command_line(imitated: Callable[..., Run], tmp_path: Path) -> None:
    copy = tmp_path / "planted/highway_bench"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    python = imitated("Windows", copy)
    assert python("-m", "highway_bench", "--help").returncode == 0
    with (copy / "cli/_errors.py").open("a") as module:
        module.write("\nimport signal\nsignal.SIGKILL\n")
    done = python("-m", "highway_bench", "--help")
    assert done.returncode == 1
    assert "AttributeError: module 'signal' has no attribute 'SIGKILL'" in done.stderr


def lacking(tree: ast.AST) -> Iterator[str]:
    """The names in ``tree`` that Windows lacks."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in WINDOWS.get(module, ()):
                yield f"{module}.{name}"
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{one.name}" for one in names if one.name in WINDOWS.get(module, ()))
                yield from ABSENT & {module}
            case ast.Import(names=names):
                yield from ABSENT & {one.name for one in names}


def test_one_module_has_the_names_that_windows_lacks() -> None:
    planted = "import fcntl\nfrom os import pread\nif signal.SIGKILL: from pwd import struct_passwd"
    assert sorted(lacking(ast.parse(planted))) == ["fcntl", "os.pread", "pwd", "signal.SIGKILL"]
    found = {path.name for path in PACKAGE.rglob("*.py") if any(lacking(ast.parse(path.read_text(encoding="utf-8"))))}
    assert found == {"os_names.py"}
