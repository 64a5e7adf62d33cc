"""What else kept a machine busy: differences of the kernel's counters."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from highway_bench.provenance import machine as module
from highway_bench.provenance.machine import Load


def test_pressure_that_the_kernel_does_not_count_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files exist there and cannot be read; here one of them is a folder."""
    monkeypatch.setattr(module, "PRESSURE", tmp_path)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "memory").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\n")
    before = Load.now()
    assert before.pressure == {"memory": 2.0}
    (tmp_path / "memory").unlink()
    assert before.since().pressure == {}


def test_counters_grow_and_are_printed_as_shares() -> None:
    before = Load.now()
    time.sleep(0.01)
    load = before.since()
    assert load.wall >= 0.01
    assert min(load.stolen, *load.pressure.values()) >= 0
    assert str(Load(10.0, 0.0, {"cpu": 5.0})).startswith("meanwhile some program waited for cpu 50 % of the time; ")
    assert str(Load(10.0, 1.0, {})).startswith("other virtual machines took ")
