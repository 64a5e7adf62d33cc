"""A plug-in for a test: a worker logs the start of each chunk of a population and stops its runner at a given step.

The log file, the step and the signal are environment variables, which workers inherit."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from unittest.mock import Mock

from highway_bench.training import checkpoint
from highway_bench.training.population import Population

run_chunk, step = Population.run_chunk, Population._step
steps = 0


def logging_run_chunk(self, *stop):
    with Path(os.environ["CHUNKS"]).open("a", encoding="utf-8") as out:
        out.write(f"{len(self.live[0].losses)} {len(self.live)}\n")
    return run_chunk(self, *stop)


def stopping_step(self, rows):
    global steps
    losses = step(self, rows)
    steps += 1
    if steps == int(os.environ.get("STOP_AT", "0")):
        handler = Mock(side_effect=signal.getsignal(signal.SIGTERM))
        signal.signal(signal.SIGTERM, handler)
        os.kill(os.getppid(), signal.Signals[os.environ["STOP_WITH"]])
        while not handler.called:  # until the runner, or the thread that monitors the runner, ends this process
            time.sleep(0.01)
    return losses


if multiprocessing.parent_process() is not None:
    if os.environ.get("STOP_WITH") == "SIGKILL":  # the worker gets no signal: only its periodic checkpoints are left
        checkpoint.INTERVAL = checkpoint.WRITING_FACTOR = 0.0
    Population.run_chunk = logging_run_chunk
    Population._step = stopping_step
