"""The clock of a thread, on a core that another process shares."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from highway_bench.measure import run_delay
from highway_bench.measure.run_delay import ThreadClock, delay_is_counted, pinned, process_delay

counted = pytest.mark.skipif(not delay_is_counted(), reason="this kernel does not count run delay")


@pytest.fixture
def busy_core() -> Iterator[int]:
    """A core on which another process never sleeps."""
    core = min(os.sched_getaffinity(0))
    loop = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield core
        process.kill()


def work(seconds: float) -> None:
    """Keep this thread busy until it has run for so many seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@counted
def test_a_shared_core_lengthens_the_wall_time_and_not_the_threads_own(busy_core: int) -> None:
    with pinned(0):
        assert os.sched_getaffinity(0) == {busy_core}
        clock, before = ThreadClock(), process_delay()
        own, wall = clock(), time.perf_counter()
        work(0.3)
        own, wall = clock() - own, time.perf_counter() - wall
    assert wall > 1.2 * own  # a fair scheduler gives each of the two half of the core
    assert process_delay() - before > 0.5 * (wall - own)
    assert own < 0.45


def test_without_a_count_it_is_the_cpu_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_delay, "THREADS", run_delay.Path("/nowhere"))
    assert not delay_is_counted()
    clock = ThreadClock()
    before = clock()
    time.sleep(0.05)
    assert clock() - before < 0.04  # sleeping takes none


def test_pinning_ends() -> None:
    before = os.sched_getaffinity(0)
    with pinned(len(before) + 1):
        assert os.sched_getaffinity(0) == {sorted(before)[1 % len(before)]}
    assert os.sched_getaffinity(0) == before
    with pinned(None):
        assert os.sched_getaffinity(0) == before
