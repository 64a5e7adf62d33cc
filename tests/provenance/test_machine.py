"""The identity of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.provenance import machine


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
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2})
    assert machine.identity.__wrapped__("cpu")[:2] == ("cpu-amd-epyc-7763-64-core-3c", None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_device_that_is_not_there() -> None:
    with pytest.raises(BadInput, match="this machine has no device 'cuda'"):
        machine.identity("cuda")


@pytest.mark.gpu
def test_gpu_identity() -> None:
    name, gpu, _ = machine.identity("cuda")
    assert gpu == torch.cuda.get_device_name(0)
    assert name == f"{machine.slug(gpu)}-{machine.slug(machine.cpu_model())}"


def test_torchs_version_is_read_without_importing_it() -> None:
    assert machine.torch_version() == torch.__version__
