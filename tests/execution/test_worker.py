"""The identity of a worker's machine, which the worker gives without starting CUDA."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from highway_bench.execution.worker import _identity_of
from highway_bench.provenance import Identity, identity
from highway_bench.provenance.machine import cores, host, torch_version


def broken(device: str) -> str:
    raise RuntimeError("CUDA error: device-side assert triggered")


def test_a_cpu() -> None:
    assert _identity_of("cpu") == identity()


@pytest.mark.parametrize(
    ("cuda", "expected"),
    [
        ({"is_initialized": lambda: True, "get_device_name": lambda device: f"NVIDIA {device}"}, "NVIDIA cuda:1"),
        ({"is_initialized": lambda: False, "get_device_name": broken}, None),
        ({"is_initialized": lambda: True, "get_device_name": broken}, None),
    ],
)
def test_a_gpu(monkeypatch: pytest.MonkeyPatch, cuda: dict[str, object], expected: str | None) -> None:
    torch_version()  # read before torch is replaced
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(**cuda)))
    machine = f"nvidia-cuda-1_{host()}-{cores()}c"
    assert _identity_of("cuda:1") == (expected and Identity(machine, expected, torch_version()))
