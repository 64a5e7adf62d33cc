"""Processes that stay alive between calls, and end with this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import psutil
import pytest

from highway_bench.measure.processes import MOST_PROCESSES, ProcessDied, call_in, sample_processes


def leave(status: int) -> None:
    os._exit(status)


def fail() -> None:
    raise KeyError("no such thing")


def test_a_number_is_one_process_until_it_dies() -> None:
    first = call_in(7, os.getpid)
    assert first not in (os.getpid(), call_in(8, os.getpid))
    assert call_in(7, os.getpid) == first
    with pytest.raises(KeyError, match="no such thing"):
        call_in(7, fail)
    assert call_in(7, os.getpid) == first
    with pytest.raises(ProcessDied, match="status 3"):
        call_in(7, leave, 3)
    assert call_in(7, os.getpid) != first


def test_they_end_when_this_process_is_killed() -> None:
    """Also in the middle of a call."""
    code = (
        "import os, time, threading\n"
        "from highway_bench.measure.processes import call_in\n"
        "if __name__ == '__main__':\n"
        "    print(call_in(1, os.getpid), flush=True)\n"
        "    call_in(1, time.sleep, 60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    for _ in range(100):
        if not child.is_running() or child.status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    raise AssertionError("the process is still running")


def test_processes_are_sampled_until_it_is_precise() -> None:
    numbers: list[int] = []

    def sampled(*, precise_at: int, least: int = 3, seconds: float = 60.0, broken: tuple[int, ...] = ()) -> list[str]:
        def sample(number: int) -> None:
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
