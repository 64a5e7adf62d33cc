"""Stopping: a SIGTERM waits for the end of what must not be broken off."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from highway_bench.training.stopping import termination_put_off


class Ended(Exception):
    """Stands for the end of the process."""


def end(*_: object) -> NoReturn:
    raise Ended


@pytest.fixture
def handled() -> Iterator[Callable[[object], None]]:
    """Sets what a SIGTERM does in this test."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)  # type: ignore[arg-type,return-value]
    signal.signal(signal.SIGTERM, before)


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_waits_and_is_told(handled: Callable[[object], None]) -> None:
    handled(end)
    steps = []

    def work() -> None:
        with termination_put_off() as told_to_stop:
            while not told_to_stop():
                terminate()
                terminate()  # whoever is in a hurry sends another
                steps.append("ended")

    with pytest.raises(Ended):
        work()
    assert steps == ["ended"]


def test_what_does_not_end_the_process_ends_what_was_told(handled: Callable[[object], None]) -> None:
    handled(signal.SIG_IGN)
    with pytest.raises(SystemExit, match="143"), termination_put_off():
        terminate()


def test_without_a_signal_all_is_as_before(handled: Callable[[object], None]) -> None:
    handled(end)
    with termination_put_off() as told_to_stop:
        assert not told_to_stop()
    assert signal.getsignal(signal.SIGTERM) is end


def test_only_a_main_thread_can_put_it_off(handled: Callable[[object], None]) -> None:
    handled(end)
    found = []

    def elsewhere() -> None:
        with termination_put_off() as told_to_stop:
            found.append((told_to_stop(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [(False, end)]
