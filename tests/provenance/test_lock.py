"""File locks: held by a process, not by a file."""

import os
import subprocess
import sys

import pytest
from filelock import Timeout

from highway_bench.provenance.lock import file_lock, holder

HOLD = """
import os, sys
from pathlib import Path
from highway_bench.provenance.lock import file_lock
lock = file_lock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_taken_lock_names_its_holder(tmp_path):
    path = tmp_path / "lock"
    assert holder(path) == ""
    with file_lock(path):
        with pytest.raises(Timeout):
            file_lock(path).acquire(timeout=0)
        assert holder(path) == str(os.getpid())
    file_lock(path).acquire(timeout=0).lock.release()


def test_a_reentrant_lock_is_taken_again_by_its_thread(tmp_path):
    with file_lock(tmp_path / "lock", reentrant=True), file_lock(tmp_path / "lock", reentrant=True) as inner:
        assert inner.is_locked
    assert not inner.is_locked


def test_a_kill_releases_the_lock(tmp_path):
    path = tmp_path / "lock"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    with other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(Timeout):
            file_lock(path).acquire(timeout=0)
        assert holder(path) == str(other.pid)
        other.kill()
    with file_lock(path).acquire(timeout=10):
        assert holder(path) == str(os.getpid())
