"""Free memory: the machine's, or what the tightest limit of a control group leaves."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from highway_bench.provenance import free_memory as memory_cgroup
from highway_bench.provenance.free_memory import USABLE, free_bytes, gib, usable_bytes

MIB = 2**20


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with 1,000 MiB available, and a folder for its control groups."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": 1000 * MIB})())
    monkeypatch.setattr(memory_cgroup, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory_cgroup, "MOUNTED", tmp_path)
    return tmp_path


def write(folder: Path, limit: str, usage: int, limit_file: str, usage_file: str, stat: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit_file).write_text(f"{limit}\n")
    (folder / usage_file).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(stat)


def write_v2(folder: Path, limit: str, usage: int, cached: int = 0) -> None:
    write(folder, limit, usage, "memory.max", "memory.current", f"anon 5\ninactive_file {cached}\n")


def test_without_limits_it_is_what_the_machine_has(groups: Path) -> None:
    assert free_bytes("cpu") == 1000 * MIB  # no file: not Linux
    (groups / "cgroup").write_text("0::/job\n")
    write_v2(groups / "job", "max", 5)
    assert free_bytes("cpu") == 1000 * MIB
    assert usable_bytes("cpu") == int(USABLE * 1000 * MIB)


def test_the_tightest_limit_counts_and_dropped_files_are_free(groups: Path) -> None:
    (groups / "cgroup").write_text("0::/user/job\n")
    write_v2(groups / "user", str(500 * MIB), 300 * MIB, cached=50 * MIB)
    write_v2(groups / "user/job", str(400 * MIB), 100 * MIB)
    assert free_bytes("cpu") == 250 * MIB
    write_v2(groups / "user/job", str(400 * MIB), 390 * MIB)
    assert free_bytes("cpu") == 10 * MIB
    write_v2(groups / "user/job", str(400 * MIB), 401 * MIB)
    assert free_bytes("cpu") == 0


def test_version_1(groups: Path) -> None:
    (groups / "cgroup").write_text("4:cpu:/job\n3:memory:/job\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
    write(groups / "memory/job", str(300 * MIB), 100 * MIB, *names, f"total_inactive_file {20 * MIB}\n")
    assert free_bytes("cpu") == 220 * MIB


@pytest.mark.parametrize(
    ("size", "text"), [(2**30, "1.0 GiB"), (1536 * 2**30, "1,536.0 GiB"), (MIB, "1 MiB"), (-5, "0 MiB")]
)
def test_bytes_in_messages(size: int, text: str) -> None:
    assert gib(size) == text
