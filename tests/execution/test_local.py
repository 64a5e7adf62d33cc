"""The local engine by itself: after an interrupt, and where workers or cells end Python."""

import pytest

from highway_bench.errors import HighwayBenchError
from highway_bench.execution.engines import local
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.job import Began, Ended
from highway_bench.provenance.free_memory import PROCESS_BYTES


@pytest.fixture
def trials(cell):
    """Builds cells of one group, which do these things in this order."""
    return lambda *actions: [cell(do, task="fake-trials", seed=seed) for seed, do in enumerate(actions)]


def ends(engine, *jobs):
    return [event for event in engine.run(jobs) if isinstance(event, Ended)]


def statuses(events):
    """The status of each cell, by its seed; each has ended once."""
    found = [(event.job.cells[event.result.index].seed, str(event.result.status)) for event in events]
    assert len(found) == len(dict(found))
    return dict(sorted(found))


def test_drain_repeats_results_that_were_not_taken(job, trials):
    """An interrupt while the runner was storing a cell: the engine cannot know that it was stored."""
    with LocalEngine(1) as engine:
        events = engine.run([job(*trials("measure", "measure", "measure"))])
        first = next(event for event in events if isinstance(event, Ended))
        second = next(event for event in events if isinstance(event, Ended))
        assert (first.result.index, second.result.index) == (0, 1)
        left = [event.result.index for event in engine.drain()]
    assert left in ([1], [1, 2])  # the third may have ended by then


def test_an_engine_runs_again_after_it_was_left(job, trials):
    engine = LocalEngine(1)
    for _ in range(2):
        with engine:
            assert statuses(ends(engine, job(*trials("measure")))) == {0: "ok"}


@pytest.mark.parametrize(
    ("does", "workers"), [("os._exit(0)", 1), ("os._exit(0)", 2), ("os._exit(3)", 1), ("time.sleep(60)", 1)]
)
def test_workers_that_end_or_hang_while_they_start(job, trials, tmp_path, monkeypatch, does, workers):
    """The pool replaces workers that exit with code 0 without end and without a message."""
    source = f"import multiprocessing, os, time\nif multiprocessing.parent_process() is not None: {does}\n"
    (tmp_path / "does_not_start.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(local, "STARTING", 0.5 if "sleep" in does else local.STARTING)
    jobs = [job(one, plugins=("does_not_start",)) for one in trials(*["measure"] * 3)]
    with LocalEngine(workers) as engine, pytest.raises(HighwayBenchError, match="take a job"):
        list(engine.run(jobs))


def test_a_cell_that_exits_python_does_not_affect_its_group(job, trials):
    """``sys.exit`` in one is an error of that cell alone: the others are not run one by one."""
    with LocalEngine(1) as engine:
        events = ends(engine, job(*trials("measure", "leave", "measure")))
    assert statuses(events) == {0: "ok", 1: "failed", 2: "ok"}
    assert {len(event.job.cells) for event in events} == {3}


def test_a_worker_with_a_broken_gpu_leaves_its_other_cells_to_another(job, trials):
    """The cell that broke it has its own status; a later one would fail in the same process."""
    with LocalEngine(1) as engine:
        events = ends(engine, job(*trials("break-gpu", "measure")))
    assert statuses(events) == {0: "failed", 1: "ok"}, [event.result.message for event in events]
    assert str(events[0].result.message).startswith("RuntimeError: CUDA error")


@pytest.mark.parametrize(("share", "together"), [(0.4, True), (0.6, False), (2.0, False)])
def test_jobs_that_do_not_fit_memory_together_run_one_after_the_other(job, trials, monkeypatch, share, together):
    """One always runs: its worker decides about each cell."""
    memory = 100 * PROCESS_BYTES
    monkeypatch.setattr(local, "usable_bytes", lambda device: memory)
    with LocalEngine(2) as engine:
        events = list(engine.run([job(one, bytes=int(share * memory)) for one in trials("short", "short")]))
    assert [type(event) for event in events] == ([Began, Began, Ended, Ended] if together else [Began, Ended] * 2)


@pytest.mark.parametrize(("workers", "status"), [(2, "ok"), (1, "oom")])
def test_a_cell_without_memory_next_to_others_runs_again_alone(job, trials, workers, status):
    """The first time is final where nothing else ran."""
    with LocalEngine(workers) as engine:
        events = list(engine.run(map(job, trials("crowded", "crowded"))))
    assert statuses(event for event in events if isinstance(event, Ended)) == {0: status, 1: status}
    if workers == 2:
        assert [type(event) for event in events] == [Began, Began, *[Began, Ended] * 2]


def test_cells_of_a_group_that_lack_memory_run_again_alone(job, trials):
    cells = trials("crowded", "measure", "crowded", "crowded")
    with LocalEngine(2) as engine:
        assert statuses(ends(engine, job(*cells[:3]), job(cells[3]))) == dict.fromkeys(range(4), "ok")
