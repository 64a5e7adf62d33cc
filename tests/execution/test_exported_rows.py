"""A run into a store of imported rows measures nothing again; a training's digest is the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.execution import schedule
from highway_bench.execution.runner import Summary
from highway_bench.execution.schedule import Schedule
from highway_bench.provenance import Identity
from highway_bench.results import Status, Store, export_runs, import_rows
from highway_bench.tasks import tasks
from tests.combinations import TASKS

TRAINING = Cell(
    task="trainability", block="highway", family="dense", depth=1, width=8, nominal_width=8, dataset="digits"
)


def test_an_imported_store_goes_on(
    run: Callable[..., Summary], store: Store, cell: Callable[..., Cell], tmp_path: Path
) -> None:
    cells = [cell(seed=seed) for seed in range(3)] + [cell("diverge"), cell("raise"), cell("skip")]
    first = run(cells)
    export_runs(store, tmp_path / "rows")
    import_rows(tmp_path / "elsewhere.sqlite", tmp_path / "rows")
    with Store(tmp_path / "elsewhere.sqlite") as elsewhere:
        assert sorted(map(str, elsewhere.rows())) == sorted(map(str, store.rows()))
        assert elsewhere.runs() == store.runs()
        again = run([*cells, cell(seed=3)], store=elsewhere)
        assert (again.stored, again.measured) == (5, 2)  # the failure is measured again, and the new cell
        assert again.digests | first.digests == again.digests
    assert first.counts == {Status.OK: 3, Status.DIVERGED: 1, Status.FAILED: 1, Status.SKIPPED: 1}


def digest_on(machine: str, torch: str, store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(schedule, "identity", lambda device: Identity(machine, None, torch))
    planned = Schedule(store)
    planned.add({TRAINING: ()})
    planned.ready()
    return planned.items[TRAINING].digest


def test_the_digest_of_a_training_leaves_the_machine_out(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    here = digest_on("cpu-a-2c", "2.13.0+cpu", store, monkeypatch)
    assert digest_on("cpu-b-64c", "2.13.1+cu130", store, monkeypatch) == here
    assert digest_on("cpu-a-2c", "2.14.0+cpu", store, monkeypatch) != here


def test_only_tasks_that_read_a_clock_or_an_allocator_are_meters() -> None:
    assert {name for name in TASKS if tasks.get(name).meter} == {"throughput", "memory"}
