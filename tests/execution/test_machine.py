"""Where a measurement was made, and with which commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.execution import machine


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "intel-xeon-e5-2680-v4"),
        ("AMD EPYC 7763 64-Core Processor", "amd-epyc-7763-64-core"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("", "unknown"),
    ],
)
def test_slug(text: str, expected: str) -> None:
    assert machine.slug(text) == expected


def test_cpu_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\n", encoding="utf-8")
    monkeypatch.setattr(machine, "CPU_INFO", info)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    assert machine.machine_identity.__wrapped__("cpu") == ("cpu-amd-epyc-7763-64-core-3c", None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_device_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="this machine has no device 'cuda'"):
        machine.machine_identity("cuda")


@pytest.mark.gpu
def test_gpu_identity() -> None:
    name, gpu = machine.machine_identity("cuda")
    assert gpu == torch.cuda.get_device_name(0)
    assert name == machine.slug(gpu)


def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@x"]
        return subprocess.run(
            ["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("a = 1\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("b = 1\n", encoding="utf-8")
    assert machine.commit(package) is None  # no checkout
    git("init")
    git("add", "b.py")
    git("commit", "-m", "first")
    assert machine.commit(package) is None  # lies in a checkout that does not track it
    git("add", "package")
    git("commit", "-m", "second")
    head = git("rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as in a hook
    assert machine.commit(package) == head
    (package / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "new.py").write_text("", encoding="utf-8")
    (tmp_path / "b.py").write_text("b = 2\n", encoding="utf-8")
    assert machine.commit(package) == head  # none of them is source of the package
    (package / "blocks").mkdir()
    new = package / "blocks" / "new.py"
    new.write_text("", encoding="utf-8")
    assert machine.commit(package) == f"{head}+dirty"
    new.unlink()
    assert machine.commit(package) == head
    (package / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert machine.commit(package) == f"{head}+dirty"
