"""The local engine on every GPU of one model: a fake inventory, and workers that report which GPU they may use."""

import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.engines import _pool
from highway_bench.execution.engines._pool import ON_GPU, Slot, WorkerKind, gpu_share, usable_gpus
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.job import Ended, Job
from highway_bench.provenance.free_memory import PROCESS_BYTES, USABLE, Gpu

GIB = 2**30


@pytest.fixture
def gpus(monkeypatch):
    """Lets this machine have GPUs of these models, of 80 GiB each."""

    def have(models):
        monkeypatch.setattr(_pool, "models_of_gpus", lambda: list(models))

    monkeypatch.delenv(_pool.VISIBLE, raising=False)
    monkeypatch.setattr(_pool, "gpu", lambda device: Gpu("H100", 80 * GIB, 80 * GIB, bfloat16=True, tf32=True))
    _pool._usable.cache_clear()
    yield have
    _pool._usable.cache_clear()


def kind(*, device="cuda", alone=False, threads=1, mode="eager"):
    return WorkerKind("task", mode, threads, alone, device, ())


CAPTURED = kind(alone=True, mode="cudagraph")


@pytest.mark.parametrize(
    ("number", "of", "workers", "slots"),
    [
        (2, kind(device="cpu"), 16, [Slot(16)]),
        (2, kind(device="cpu", threads=4), 16, [Slot(4)]),
        (2, kind(device="cpu", alone=True), 16, [Slot(1)]),
        (2, kind(), 16, [Slot(ON_GPU, "0"), Slot(ON_GPU, "1")]),
        (2, kind(), 3, [Slot(2, "0"), Slot(1, "1")]),
        (2, kind(), 1, [Slot(1, "0")]),
        (2, kind(threads=8), 2, [Slot(1, "0")]),
        (2, kind(alone=True), 16, [Slot(1, "0")]),  # the host launches each kernel: nothing else runs
        (2, CAPTURED, 16, [Slot(1, "0", (0, 1, 2, 3)), Slot(1, "1", (4, 5, 6, 7))]),
        (1, CAPTURED, 8, [Slot(1, "0")]),  # not pinned
        (5, CAPTURED, 8, [Slot(1, str(one), (2 * one, 2 * one + 1)) for one in range(4)]),  # each has two cores
    ],
)
def test_slots(gpus, monkeypatch, number, of, workers, slots):
    """On a machine of eight cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    gpus(["H100"] * number)
    assert of.slots(workers) == slots


def test_gpus_of_one_model(gpus, monkeypatch):
    gpus(["H100", "L4", "H100"])
    assert usable_gpus() == ("0", "2")
    monkeypatch.setenv(_pool.VISIBLE, "GPU-a,GPU-b,GPU-c,GPU-of-no-machine")
    assert usable_gpus() == ("GPU-a", "GPU-c")
    gpus([])
    monkeypatch.setenv(_pool.VISIBLE, "")
    with pytest.raises(BadInput, match="CUDA"):
        usable_gpus()


@pytest.fixture
def on_gpu(job, cell):
    """Builds a job of one cell on a GPU, which says by default on which one it ran."""
    return lambda do="gpu", seed=0, **changes: job(cell(do, seed=seed).but(device="cuda"), **changes)


def test_shares(gpus, on_gpu):
    one = on_gpu()
    half = int(USABLE * 40 * GIB) - PROCESS_BYTES
    assert [gpu_share(replace(one, bytes=size)) for size in (GIB, half, 300 * GIB)] == [1 / ON_GPU, 0.5, 1.0]
    assert gpu_share(replace(one, alone=True)) == 1.0
    assert gpu_share(Job.of_line(one.line().replace('"cuda"', '"cpu"'))) == 0.0


def spans(engine, jobs):
    """The GPU, begin and end of each cell that ended well, and the cores that it might use."""
    found = []
    for event in engine.run(jobs):
        if isinstance(event, Ended):
            assert event.result.status == "ok", event.result.message
            (loss,) = event.result.measurements
            began, ended, *cores = loss.samples
            found.append((int(loss.value or 0), began, ended, set(map(int, cores))))
    return found


def most_at_once(found, gpu):
    of_gpu = [one for one in found if one[0] == gpu]
    return max(sum(begin <= began < end for _, begin, end, _ in of_gpu) for _, began, _, _ in of_gpu)


def test_every_gpu_is_used_and_shared_as_memory_allows(gpus, on_gpu):
    gpus(["H100", "H100"])
    jobs = [on_gpu(seed=seed, bytes=35 * GIB) for seed in range(12)]  # two fit at a time
    with LocalEngine(8) as engine:
        found = spans(engine, jobs)
    assert len(found) == 12
    assert min(Counter(gpu for gpu, *_ in found).values()) >= 2
    assert [most_at_once(found, gpu) for gpu in (0, 1)] == [2, 2]


def test_a_timed_cell_runs_alone_on_the_machine(gpus, on_gpu):
    gpus(["H100", "H100"])
    jobs = [on_gpu(seed=seed, alone=True) for seed in range(3)]
    with LocalEngine(8) as engine:
        found = sorted(spans(engine, jobs), key=lambda one: one[1])
    assert {gpu for gpu, *_ in found} == {0}
    assert all(before[2] <= after[1] for before, after in pairwise(found))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two GPUs need two cores")
def test_captured_steps_are_timed_on_every_gpu(gpus, on_gpu, monkeypatch):
    gpus(["H100", "H100"])
    monkeypatch.setattr(_pool, "HOST_CORES", 1)
    jobs = [on_gpu(seed=seed, alone=True, mode="cudagraph") for seed in range(6)]
    with LocalEngine(8) as engine:
        found = spans(engine, jobs)
    assert {gpu for gpu, *_ in found} == {0, 1}
    assert [most_at_once(found, gpu) for gpu in (0, 1)] == [1, 1]
    first, second = (set().union(*(cores for number, _, _, cores in found if number == gpu)) for gpu in (0, 1))
    assert first.isdisjoint(second)


def test_a_gpu_whose_worker_dies_costs_the_others_nothing(gpus, on_gpu):
    gpus(["H100", "H100"])
    jobs = [on_gpu("gpu" if seed else "kill", seed) for seed in range(6)]
    with LocalEngine(2) as engine:
        ended = [event.result.status for event in engine.run(jobs) if isinstance(event, Ended)]
    assert sorted(ended) == ["crashed", *["ok"] * 5]
