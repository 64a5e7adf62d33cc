"""A system that is not Linux, imitated: its names, its processor, and none of Linux's files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import highway_bench
from highway_bench.results import Store
from tests import absent_names

PACKAGE = Path(highway_bench.__file__).parent
RUN = "run memory throughput --profile smoke --family dense --block plain --workers 1 --strict --store store.sqlite"
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
def imitated(tmp_path):
    """A function that runs Python on a system, with ``package`` for this package's folder."""

    def imitated(system, package=PACKAGE):
        shutil.copyfile(absent_names.__file__, tmp_path / "sitecustomize.py")
        (tmp_path / "sysctl").write_text("#!/bin/sh\necho Apple M3 Pro\n")
        (tmp_path / "sysctl").chmod(0o755)
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
def test_all_that_a_first_visit_runs(system, machine, shown, imitated, tmp_path):
    python = imitated(system)
    for words in ("--help", "list", RUN, "status --store store.sqlite", "report --store store.sqlite --out page"):
        done = python("-m", "highway_bench", *words.split())
        assert done.returncode == 0, done.stderr
    done = python("-c", LOCK)
    assert done.returncode == 0, done.stderr
    with Store(tmp_path / "store.sqlite", read_only=True) as store:
        assert {row["machine"].startswith(machine) for row in store.rows()} == {True}
    assert shown in (tmp_path / "page/index.html").read_text()
