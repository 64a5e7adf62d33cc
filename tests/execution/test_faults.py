"""Faults of cells, workers and disk: each costs its cell alone, and the run goes on."""

import os
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from highway_bench.execution import failure as failing
from highway_bench.execution.engines import local
from highway_bench.execution.engines.local import LocalEngine
from highway_bench.execution.failure import death, failure, oom_kills
from highway_bench.provenance import free_memory as cgroups
from highway_bench.results.schema import Status

MEMORY_CGROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))  # of version 1, of version 2
LIMITS = {"memory.limit_in_bytes": 2**28, "memory.max": 2**28, "memory.swap.max": 0}


def endings(store):
    return {row["depth"]: (row["status"], row["message"]) for row in store.rows(metric="loss")}


ENDS = {
    "diverge": ("diverged", "at step 3"),
    "skip": ("skipped", "makes no sense"),
    "raise": ("failed", "(runner_fakes.py, line"),
    "bad-input": ("failed", "no such width"),
    "memory": ("oom", "MemoryError"),
    "allocator": ("oom", "DefaultCPUAllocator"),
    "address-space": ("oom", "MemoryError"),
    "leave": ("failed", "SystemExit: 4"),
    "interrupt": ("failed", "KeyboardInterrupt"),
    "exit": ("crashed", "exit code 3"),
    "exit-0": ("crashed", "exit code 0"),
    "exit-255": ("crashed", "exit code 255"),
    "kill": ("crashed", "signal 9 (SIGKILL)"),
    "segmentation-fault": ("crashed", "signal 11 (SIGSEGV)"),
    "abort": ("crashed", "signal 6 (SIGABRT)"),
    "hang": ("timeout", "1 s"),
    "stop": ("timeout", "1 s"),
    "deaf": ("timeout", "1 s"),
    "undeclared": ("failed", "'speed'"),
    "twice": ("failed", "two values"),
    "nothing": ("failed", "nothing"),
    "odd-value": ("failed", "TypeError: "),
    "odd-message": ("failed", "UnicodeEncodeError"),
}


def test_each_fault_costs_its_cell_alone(run, store, cell):
    """Healthy cells lie between the faults."""
    cells = []
    for depth, (do, (status, _)) in enumerate(ENDS.items(), start=1):
        cells += [cell(do, depth=depth, timeout=1.0 if status == "timeout" else 60.0), cell(depth=100 + depth)]
    summary = run(cells, workers=2)
    found = endings(store)
    for depth, (status, message) in enumerate(ENDS.values(), start=1):
        assert found[depth][0] == status, found[depth]
        assert message in str(found[depth][1])
        assert found[100 + depth] == ("ok", None)
    assert summary.counts == {**Counter(status for status, _ in ENDS.values()), "ok": len(ENDS)}
    assert (summary.measured, summary.stored, summary.exit_status) == (2 * len(ENDS), 0, 1)


@pytest.fixture
def memory_cgroup(monkeypatch):
    """A memory cgroup of 256 MiB, whose counter is read; the test is skipped where none can be created."""
    for version, root in enumerate(MEMORY_CGROUPS, start=1):
        path = root / f"highway-bench-test-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        try:
            limits = [name for name in LIMITS if (path / name).exists()]
            for name in limits:
                (path / name).write_text(str(LIMITS[name]), encoding="ascii")
            if limits:
                group = cgroups.MemoryCgroup(version, root, path)
                monkeypatch.setattr(failing, "memory_cgroups", lambda group=group: [group])
                assert oom_kills() == 0
                yield path
                return
        except OSError:
            continue
        finally:
            for _ in range(50):  # until the kernel has taken its last process out
                try:
                    path.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)
    pytest.skip("no memory cgroup can be made here")


def test_the_kernels_oom_killer(run, store, cell, memory_cgroup):
    """The kernel ends the worker, not the run. A later kill by hand is not taken for another."""
    cells = [
        cell(depth=1),
        cell("cgroup-memory", depth=2, cgroup=str(memory_cgroup), bytes=2**29),
        cell("kill", depth=3),
        cell(depth=4),
    ]
    run(cells, workers=1)
    ends = {depth: status for depth, (status, _) in endings(store).items()}
    assert ends == {1: "ok", 2: "oom", 3: "crashed", 4: "ok"}


@pytest.mark.parametrize(
    ("code", "kernel", "status", "says"),
    [
        (-9, True, "oom", "OOM killer"),
        (-9, False, "crashed", "signal 9 (SIGKILL)"),
        (-9, None, "crashed", "may have"),
        (-11, True, "crashed", "signal 11 (SIGSEGV)"),
    ],
)
def test_deaths(code, kernel, status, says):
    found, message = death(code, out_of_memory=kernel)
    assert found == status
    assert says in message


def test_two_deaths_and_one_kill_by_the_kernel(monkeypatch):
    with LocalEngine(1) as engine:
        counts = iter([(engine._oom_kills or 0) + 1] * 2)
        monkeypatch.setattr(local, "oom_kills", lambda: next(counts))
        engine._oom_kills = engine._oom_kills or 0
        assert [engine._death(-9)[0] for _ in range(2)] == ["oom", "crashed"]


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("7:cpu,memory:/a/b", "memory/a/b/memory.oom_control"),
        ("0::/a:b", "a:b/memory.events"),
        ("0::/", "memory.events"),
    ],
)
def test_the_cgroup_counts_before_the_machine(monkeypatch, tmp_path, group, file):
    monkeypatch.setattr(failing, "OF_MACHINE", tmp_path / "vmstat")
    monkeypatch.setattr(cgroups, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(cgroups, "MOUNTED", tmp_path / "mounted")
    assert oom_kills() is None
    (tmp_path / "vmstat").write_text("pgfault 3\noom_kill 17\n", encoding="ascii")
    (tmp_path / "cgroup").write_text(f"3:devices:/\n{group}\n", encoding="ascii")
    assert oom_kills() == 17
    counter = tmp_path / "mounted" / file
    counter.parent.mkdir(parents=True)
    counter.write_text("oom 5\noom_kill 2\n", encoding="ascii")
    assert oom_kills() == 2


def test_megabytes_of_print_reach_no_result(run, cell, capfd):
    """What workers print goes to stderr: stdout has the results of the command alone."""
    summary = run([cell("print", depth=depth, megabytes=3) for depth in (1, 2)], workers=1)
    out, err = capfd.readouterr()
    assert (summary.counts, out) == ({"ok": 2}, "")
    assert len(err) > 12 * 2**20


def test_a_result_that_does_not_fit_on_the_disk(run, store, cell):
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 60}")
    run([cell(depth=1), cell("large", depth=2), cell(depth=3)])
    ends = endings(store)
    assert {depth: status for depth, (status, _) in ends.items()} == {1: "ok", 2: "failed", 3: "ok"}
    assert re.match(".*disk is full", str(ends[2][1]))


@pytest.mark.parametrize(
    ("device", "says", "words"),
    [
        ("cpu", "OutOfMemoryError: Allocation", {}),
        pytest.param("cuda", "OutOfMemoryError: CUDA", {"allocate": 2**50}, marks=pytest.mark.gpu),
    ],
)
def test_memory_that_a_gpu_refuses_costs_its_cell_alone(run, store, cell, log, device, says, words):
    """The type of torch's error decides, not its message. The next cell has the same worker. No GPU has a pebibyte."""
    healthy = "cuda" if device == "cuda" else "measure"
    cells = [cell(healthy), cell("cuda-memory", depth=2, **words), cell(healthy, depth=3)]
    run([one.but(device=device) for one in cells], workers=1)
    found = endings(store)
    assert [found[depth][0] for depth in (1, 2, 3)] == ["ok", "oom", "ok"], found
    assert says in str(found[2][1])
    assert len({line.split()[-1] for line in log.read_text(encoding="utf-8").splitlines()}) == 1


def test_an_error_that_hides_another_one_is_itself():
    """``from None`` says that the error before does not matter. Without it, the lack of memory is the reason."""
    found = []
    for hidden in (True, False):
        try:
            try:
                raise MemoryError("too much")
            except MemoryError as error:
                raise ValueError("bad option") from (None if hidden else error)
        except ValueError as error:
            found.append(failure(error)[0])
    assert found == [Status.FAILED, Status.OOM]
