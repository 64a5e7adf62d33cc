"""Set-up of every bench: float32 without TF32, and repeatable products on a GPU."""

from __future__ import annotations

import os

import pytest

from highway_bench.measure.precision import ieee_float32

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # as in a worker
ieee_float32()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, object]) -> None:
    """Leave the computer's name out of files that are committed."""
    machine_info.pop("node", None)
