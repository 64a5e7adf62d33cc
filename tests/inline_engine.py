"""Cells, jobs and engines for tests of what is built on runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

from highway_bench.cell import Cell
from highway_bench.execution import worker
from highway_bench.execution.job import Began, CellResult, Ended, Job


def cell_of(task="fake", **changes):
    """A small cell of ``task``."""
    small = {"block": "plain", "family": "dense", "depth": 1, "width": 8, "nominal_width": 8}
    return Cell(task=task, **small | changes)


def job_of(*cells, **changes):
    """A job of ``cells``, which are of one task."""
    fields = {
        "task": cells[0].task,
        "keys": tuple(map(str, range(len(cells)))),
        "cells": cells,
        "mode": "eager",
        "threads": 1,
        "alone": False,
        "timeouts": (60.0,) * len(cells),
    }
    return Job(**fields | changes)


class FakeEngine:
    """Without workers: the result of each cell of a job is what ``measure`` gives for its index."""

    workers = 1

    def __init__(self, measure: Callable[[int], CellResult]) -> None:
        self.measure = measure
        self.cells = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        for job in jobs:
            self.cells += job.cells
            yield Began(job)
            for index in range(len(job.cells)):
                yield Ended(job, self.measure(index))

    def drain(self) -> Iterator[Ended]:
        return iter(())


class InlineEngine(FakeEngine):
    """Runs every job in this process. ``most`` cells end before Ctrl-C comes."""

    def __init__(self, folder: Path, most: float = float("inf")) -> None:
        self.folder, self.most = folder, most
        self.cells = []

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        for job in jobs:
            if len(self.cells) + len(job.cells) > self.most:
                raise KeyboardInterrupt
            yield Began(job)
            path = self.folder / f"job-{len(self.cells)}.jsonl"
            path.unlink(missing_ok=True)
            worker.measure(job, path)
            self.cells += job.cells
            for line in path.read_text().splitlines(keepends=True)[1:]:
                yield Ended(job, CellResult.of_line(line))
