"""Stopping: SIGTERM is deferred until a step has ended."""

import os
import signal
import threading

import pytest

from highway_bench.training.checkpoint import deferred_sigterm


class Ended(Exception):
    """Represents the end of the process."""


def end(*_):
    raise Ended


@pytest.fixture
def handled():
    """Sets the handler of SIGTERM for this test."""
    before = signal.getsignal(signal.SIGTERM)
    yield lambda handler: signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGTERM, before)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_signal_is_deferred_and_reported(handled):
    handled(end)
    steps = []

    def work():
        with deferred_sigterm() as should_stop:
            while not should_stop():
                terminate()
                terminate()  # a sender may repeat the signal
                steps.append("ended")

    with pytest.raises(Ended):
        work()
    assert steps == ["ended"]


def test_a_signal_that_does_not_end_the_process_raises_system_exit(handled):
    handled(signal.SIG_IGN)
    with pytest.raises(SystemExit, match="143"), deferred_sigterm():
        terminate()


def test_without_a_signal_the_handler_is_restored(handled):
    handled(end)
    with deferred_sigterm() as should_stop:
        assert not should_stop()
    assert signal.getsignal(signal.SIGTERM) is end


def test_only_the_main_thread_can_defer_it(handled):
    handled(end)
    seen = []

    def elsewhere():
        with deferred_sigterm() as should_stop:
            seen.append((should_stop(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [(False, end)]
