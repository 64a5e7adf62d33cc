"""An engine that runs cells in this process, for tests of what is built on runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.execution import worker
from highway_bench.execution.job import Began, CellResult, Ended, Job


class InlineEngine:
    """Runs every job in this process, without workers to start. ``most`` cells end before Ctrl-C comes."""

    workers = 1

    def __init__(self, folder: Path, most: float = float("inf")) -> None:
        self.folder, self.most = folder, most
        self.cells: list[Cell] = []

    def __enter__(self) -> InlineEngine:
        return self

    def __exit__(self, *_: object) -> None:
        pass

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

    def drain(self) -> Iterator[Ended]:
        return iter(())
