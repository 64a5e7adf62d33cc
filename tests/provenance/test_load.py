"""What else kept a machine busy: differences of the kernel's counters."""

from __future__ import annotations

import time

from highway_bench.provenance.load import Load


def test_counters_grow_and_are_printed_as_shares() -> None:
    before = Load.now()
    time.sleep(0.01)
    load = before.since()
    assert load.wall >= 0.01
    assert min(load.stolen, *load.pressure.values()) >= 0
    assert str(Load(10.0, 0.0, {"cpu": 5.0})).startswith("meanwhile some program waited for cpu 50 % of the time; ")
    assert str(Load(10.0, 1.0, {})).startswith("other virtual machines took ")
