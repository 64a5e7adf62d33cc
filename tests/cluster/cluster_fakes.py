"""Tasks for the checks on a cluster. A plug-in next to ``runner_fakes``."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import runner_fakes

import highway_bench
from highway_bench.cell import Cell
from highway_bench.tasks import Measurement, Outcome, register_task
from highway_bench.training.checkpoint import SUFFIX, CheckpointFolder, headers_in

STEPS = 40


def write_line(cell, *words):
    with Path(cell.recipe["log"]).open("a", encoding="utf-8") as out:
        out.write(" ".join(map(str, words)) + "\n")


@register_task
class FakeSpan(runner_fakes.Fake):
    """Logs its node, when it began and ended, its depth and its seed."""

    name = "fake-span"

    def measurements(self, cell: Cell) -> Iterable[Measurement]:
        began = time.monotonic()
        time.sleep(0.3)
        write_line(
            cell, self.name, os.environ["HIGHWAY_BENCH_TEST_NODE"], began, time.monotonic(), cell.depth, cell.seed
        )
        yield Measurement(metric="loss", value=0.5)


@register_task
class FakeTimedSpan(FakeSpan):
    """As ``fake-span``, with a node to itself."""

    name = "fake-timed-span"
    alone = True
    meter = True


@register_task
class FakeSource(runner_fakes.Fake):
    """Logs the files that its process has imported."""

    name = "fake-source"

    def measurements(self, cell: Cell) -> Iterable[Measurement]:
        write_line(cell, highway_bench.__file__)
        write_line(cell, __file__)
        yield Measurement(metric="loss", value=0.5)


@register_task
class FakeTraining(runner_fakes.Fake):
    """Makes ``STEPS`` steps and saves a checkpoint after each. Its loss is the number of steps of the last process."""

    name = "fake-training"

    def timeout(self, cell: Cell) -> float:
        return 300.0

    def measure(self, cells: Sequence[Cell], checkpoints: CheckpointFolder | None = None) -> Iterator[Outcome]:
        assert checkpoints is not None
        for cell in cells:
            path = checkpoints.folder / f"{cell.seed}{SUFFIX}"
            first = int(path.read_bytes().splitlines()[1]) if path in dict(headers_in(checkpoints.folder)) else 0
            write_line(cell, "from", first, os.environ["HIGHWAY_BENCH_TEST_NODE"])
            for step in range(first, STEPS):
                save(path, checkpoints.keys[cell], str(step + 1).encode())
                time.sleep(0.2)
            path.unlink()
            yield Outcome(cell, [Measurement(metric="loss", value=float(STEPS - first))])


def save(path, key, content):
    header = {"keys": [key], "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    unfinished = path.with_suffix(".new")
    unfinished.write_bytes(json.dumps(header).encode() + b"\n" + content)
    unfinished.replace(path)
