"""Processes that stay alive between calls, and end with this one; the clock of a thread; memory that is kept."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from highway_bench.measure import processes
from highway_bench.measure.processes import (
    MOST_PROCESSES,
    ProcessDied,
    ThreadClock,
    call_in,
    call_once,
    delay_is_counted,
    pinned,
    process_delay,
    sample_processes,
)

FAULTS = """
import resource, torch
from highway_bench.measure.processes import keep_freed_memory
def faults_of_ten():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults_of_ten()
freed = faults_of_ten()
kept = keep_freed_memory()
faults_of_ten()
print(kept, freed, min(faults_of_ten() for _ in range(5)))  # a small block behind a freed buffer makes the heap grow
"""


def leave(status):
    os._exit(status)


def fail():
    raise KeyError("no such thing")


def test_a_number_is_one_process_until_it_dies():
    first = call_in(7, os.getpid)
    assert first not in (os.getpid(), call_in(8, os.getpid))
    assert call_in(7, os.getpid) == first
    with pytest.raises(KeyError, match="no such thing"):
        call_in(7, fail)
    assert call_in(7, os.getpid) == first
    with pytest.raises(ProcessDied, match="status 3"):
        call_in(7, leave, 3)
    assert call_in(7, os.getpid) != first


def test_a_call_of_a_process_of_its_own_may_take_so_long():
    assert call_once(60, os.getpid) != os.getpid()
    with pytest.raises(TimeoutError, match="no result after"):
        call_once(0.1, time.sleep, 60)
    with pytest.raises(ProcessDied, match="status 3"):
        call_once(60, leave, 3)


def test_they_end_when_this_process_is_killed():
    """Also in the middle of a call."""
    code = (
        "import os, time, threading\n"
        "from highway_bench.measure.processes import call_in\n"
        "if __name__ == '__main__':\n"
        "    print(call_in(1, os.getpid), flush=True)\n"
        "    call_in(1, time.sleep, 60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    for _ in range(100):
        if not child.is_running() or child.status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    raise AssertionError("the process is still running")


def test_processes_are_sampled_until_it_is_precise():
    numbers = []

    def sampled(*, precise_at, least=3, seconds=60.0, broken=()):
        def sample(number):
            numbers.append(number)
            if number in broken:
                raise KeyError(number)

        numbers.clear()
        return sample_processes(sample, lambda: len(numbers) >= precise_at, least=least, most_seconds=seconds)

    assert sampled(precise_at=0) == []
    assert numbers == [0, 1, 2]
    sampled(precise_at=5)
    assert numbers == [0, 1, 2, 3, 4]
    sampled(precise_at=99)
    assert numbers == list(range(MOST_PROCESSES))
    sampled(precise_at=99, seconds=0.0)
    assert numbers == [0, 1, 2]
    assert sampled(precise_at=4, broken=(1,)) == ["KeyError: 1"]
    assert numbers == [0, 1, 2, 3]
    assert len(sampled(precise_at=99, least=2, broken=(1, 2, 3, 4))) == 2
    with pytest.raises(KeyError):  # of this process
        sampled(precise_at=0, broken=(0,))


counted = pytest.mark.skipif(not delay_is_counted(), reason="this kernel does not count run delay")


@pytest.fixture
def busy_core():
    """A core on which another process never sleeps."""
    core = min(os.sched_getaffinity(0))
    loop = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield core
        process.kill()


def work(seconds):
    """Keep this thread busy until it has run for so many seconds."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@counted
def test_a_shared_core_lengthens_the_wall_time_and_not_the_threads_own(busy_core):
    with pinned(0):
        assert os.sched_getaffinity(0) == {busy_core}
        clock, before = ThreadClock(), process_delay()
        own, wall = clock(), time.perf_counter()
        work(0.3)
        own, wall = clock() - own, time.perf_counter() - wall
    assert wall > 1.2 * own  # a fair scheduler gives each of the two half of the core
    assert process_delay() - before > 0.5 * (wall - own)
    assert own < 0.45


def test_without_a_count_it_is_the_cpu_time(monkeypatch):
    monkeypatch.setattr(processes, "THREADS", processes.Path("/nowhere"))
    assert not delay_is_counted()
    clock = ThreadClock()
    before = clock()
    time.sleep(0.05)
    assert clock() - before < 0.04  # sleeping takes none


def test_pinning_ends():
    before = os.sched_getaffinity(0)
    with pinned(len(before) + 1):
        assert os.sched_getaffinity(0) == {sorted(before)[1 % len(before)]}
    assert os.sched_getaffinity(0) == before
    with pinned(None):
        assert os.sched_getaffinity(0) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="page faults of glibc's allocator")
def test_a_buffer_that_is_allocated_again_causes_no_page_faults():
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    kept, freed, again = done.stdout.split()
    if kept == "False":
        pytest.skip("this C library has no mallopt")
    assert int(again) < 0.2 * int(freed)
