"""The local engine by itself: after an interrupt, and where workers or cells end Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.execution.engines import local
from highway_bench.execution.engines.local import LocalEngine, WorkersUnusable
from highway_bench.execution.job import Began, Ended, Job
from highway_bench.provenance.free_memory import PROCESS_BYTES


def job_of(*cells: Cell, plugin: str) -> Job:
    return Job(
        task="fake-trials",
        keys=tuple(str(index) for index in range(len(cells))),
        cells=cells,
        mode="eager",
        threads=1,
        alone=False,
        timeouts=(20.0,) * len(cells),
        plugins=(plugin,),
    )


def test_drain_repeats_results_that_were_not_taken(fakes: str, cell: Callable[..., Cell]) -> None:
    """An interrupt while the runner was storing a cell: the engine cannot know that it was stored."""
    job = job_of(*(cell(task="fake-trials", seed=seed) for seed in range(3)), plugin=fakes)
    with LocalEngine(1) as engine:
        events = engine.run([job])
        first = next(event for event in events if isinstance(event, Ended))
        second = next(event for event in events if isinstance(event, Ended))
        assert (first.result.index, second.result.index) == (0, 1)
        left = [event.result.index for event in engine.drain()]
    assert left in ([1], [1, 2])  # the third may have ended by then


def test_an_engine_runs_again_after_it_was_left(fakes: str, cell: Callable[..., Cell]) -> None:
    job, engine = job_of(cell(task="fake-trials"), plugin=fakes), LocalEngine(1)
    for _ in range(2):
        with engine:
            assert [event.result.status for event in engine.run([job]) if isinstance(event, Ended)] == ["ok"]


def test_every_cell_ends_once(fakes: str, cell: Callable[..., Cell]) -> None:
    cells = [cell(do, task="fake-trials", seed=seed) for seed, do in enumerate(["measure", "kill", "raise", "exit"])]
    with LocalEngine(2) as engine:
        events = [event for event in engine.run([job_of(*cells, plugin=fakes)]) if isinstance(event, Ended)]
    ended = sorted((event.job.keys[event.result.index], event.result.status) for event in events)
    assert ended == [("0", "ok"), ("1", "crashed"), ("2", "failed"), ("3", "crashed")]


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_that_end_while_they_start(
    fakes: str, cell: Callable[..., Cell], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, workers: int
) -> None:
    """The pool replaces workers that exit with code 0 without end and without a message."""
    (tmp_path / "exits.py").write_text(
        f"import multiprocessing, os\nif multiprocessing.parent_process() is not None: os._exit({code})\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    jobs = [replace(job_of(cell(task="fake-trials", seed=seed), plugin=fakes), plugins=("exits",)) for seed in range(3)]
    with LocalEngine(workers) as engine, pytest.raises(WorkersUnusable, match="before they can take a job"):
        list(engine.run(jobs))


def test_a_cell_that_exits_python_does_not_affect_its_group(fakes: str, cell: Callable[..., Cell]) -> None:
    """``sys.exit`` in one is an error of that cell alone: the others are not run one by one."""
    cells = [cell(do, task="fake-trials", seed=seed) for seed, do in enumerate(["measure", "leave", "measure"])]
    with LocalEngine(1) as engine:
        events = [event for event in engine.run([job_of(*cells, plugin=fakes)]) if isinstance(event, Ended)]
    assert [event.result.status for event in events] == ["ok", "failed", "ok"]
    assert {len(event.job.cells) for event in events} == {3}


def test_a_worker_with_a_broken_gpu_leaves_its_other_cells_to_another(fakes: str, cell: Callable[..., Cell]) -> None:
    """The cell that broke it has its own status; a later one would fail in the same process."""
    cells = [cell(do, task="fake-trials", seed=seed) for seed, do in enumerate(["break-gpu", "measure"])]
    with LocalEngine(1) as engine:
        events = [event for event in engine.run([job_of(*cells, plugin=fakes)]) if isinstance(event, Ended)]
    ended = [(event.job.keys[event.result.index], event.result.status) for event in events]
    assert ended == [("0", "failed"), ("1", "ok")], [event.result.message for event in events]
    assert str(events[0].result.message).startswith("RuntimeError: CUDA error: device-side assert")


@pytest.mark.parametrize(("share", "together"), [(0.4, True), (0.6, False), (2.0, False)])
def test_jobs_that_do_not_fit_memory_together_run_one_after_the_other(
    fakes: str, cell: Callable[..., Cell], monkeypatch: pytest.MonkeyPatch, share: float, together: bool
) -> None:
    """One always runs: its worker decides about each cell."""
    memory = 100 * PROCESS_BYTES
    monkeypatch.setattr(local, "usable_bytes", lambda device: memory)
    jobs = [job_of(cell("short", task="fake-trials", seed=seed), plugin=fakes) for seed in range(2)]
    with LocalEngine(2) as engine:
        events = list(engine.run([replace(job, bytes=int(share * memory)) for job in jobs]))
    assert [type(event) for event in events] == ([Began, Began, Ended, Ended] if together else [Began, Ended] * 2)


@pytest.mark.parametrize(("workers", "status"), [(2, "ok"), (1, "oom")])
def test_a_cell_without_memory_next_to_others_runs_again_alone(
    fakes: str, cell: Callable[..., Cell], workers: int, status: str
) -> None:
    """The first time is final where nothing else ran."""
    jobs = [job_of(cell("crowded", task="fake-trials", seed=seed), plugin=fakes) for seed in range(2)]
    with LocalEngine(workers) as engine:
        events = list(engine.run(jobs))
    assert [event.result.status for event in events if isinstance(event, Ended)] == [status] * 2
    if workers == 2:
        assert [type(event) for event in events] == [Began, Began, *[Began, Ended] * 2]


def test_cells_of_a_group_that_lack_memory_run_again_alone(fakes: str, cell: Callable[..., Cell]) -> None:
    actions = ["crowded", "measure", "crowded", "crowded"]
    cells = [cell(do, task="fake-trials", seed=seed) for seed, do in enumerate(actions)]
    with LocalEngine(2) as engine:
        jobs = [job_of(*cells[:3], plugin=fakes), job_of(cells[3], plugin=fakes)]
        events = [event for event in engine.run(jobs) if isinstance(event, Ended)]
    ended = [(event.job.cells[event.result.index].seed, event.result.status) for event in events]
    assert sorted(ended) == [(seed, "ok") for seed in range(4)]
