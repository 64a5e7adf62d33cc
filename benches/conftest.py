"""Set-up of every bench: float32 without TF32, and repeatable products on a GPU."""

from __future__ import annotations

import pytest

from highway_bench import asv_api

asv_api.prepare()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(machine_info: dict[str, object]) -> None:
    """Leave the computer's name out of files that are committed."""
    machine_info.pop("node", None)
