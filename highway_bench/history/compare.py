"""Compare: two commits, step by step in turn, so that a disturbance meets both alike; the ratio with its interval.

Each commit's package is unpacked into a folder of its own, and one process a commit stays alive with it. They take
their samples in turn (A B, B A, A B, …), which no benchmark that runs one commit after the other can do.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.archives import extract
from highway_bench.history.layout import Layout
from highway_bench.history.measure import AsvFailed
from highway_bench.measure.statistics import Estimate, noise_floor, paired_ratio

WORKER = Path(__file__).with_name("compare_worker.py")


@dataclass(frozen=True)
class Compared:
    """One cell at two commits: seconds a step (medians), ``ratio`` of the second commit to the first with its
    interval, and the least relative difference that these samples could tell."""

    cell: str
    first: float
    second: float
    ratio: Estimate
    noise: float

    @property
    def verdict(self) -> str:
        if self.ratio.low > 1 and self.ratio.value - 1 > self.noise:
            return "slower"
        if self.ratio.high < 1 and 1 / self.ratio.value - 1 > self.noise:
            return "faster"
        return "no difference told"


class Worker:
    """A process that holds one commit's package and does what it is told, a line a word."""

    def __init__(self, name: str, package: Path, benches: Path) -> None:
        self.name = name
        environment = {**os.environ, "PYTHONPATH": str(package), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
                       "HIGHWAY_BENCH_BENCHES": str(benches)}
        # -P keeps the worker's own folder, which is this checkout's package, off the path.
        self.process = subprocess.Popen([sys.executable, "-P", str(WORKER)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment, cwd=package)

    def ask(self, **words: Any) -> Any:
        """The answer to ``words``; raises ``AsvFailed`` where the process has died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(words) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise AsvFailed(f"measuring {self.name} ended with status {self.process.wait()}; its words stand above")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # it died with a question unread
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=30)


def compare(layout: Layout, first: str, second: str, cells: Sequence[tuple[str, str, int]], *, samples: int = 40,
            device: str = "cpu") -> Iterator[Compared]:
    """Compare two commits over ``cells`` (block, family, depth), one result a cell as it is there.

    A commit may be compared with itself: what is told apart then is noise. Cells that one of the commits lacks are left
    out; raises ``NothingMeasured`` where no cell is left, ``BadInput`` for commits that do not exist or have no
    package.
    """
    if samples < 8:
        raise BadInput(f"a ratio with an interval needs 8 samples or more, not {samples}")
    hashes = [git.commit_of(layout.root, name) for name in (first, second)]
    found = False
    with ExitStack() as stack:
        workers = []
        for name, commit in zip((first, second), hashes, strict=True):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="highway-bench-")))
            unpack(layout.root, commit, folder)
            workers.append(Worker(name, folder, layout.root / "benches/history/blocks.py"))
            stack.callback(workers[-1].close)
        for block, family, depth in cells:
            cell = f"{block}, {family}, depth {depth}"
            answers = [one.ask(do="prepare", block=block, family=family, depth=depth, device=device) for one in workers]
            if not all(answer["ready"] for answer in answers):
                continue
            times: list[list[float]] = [[], []]
            for number in range(samples + 2):
                for side in (0, 1) if number % 2 == 0 else (1, 0):
                    seconds = float(workers[side].ask(do="step"))
                    if number >= 2:  # two rounds of warming up
                        times[side].append(seconds)
            found = True
            ratio = paired_ratio(times[1], times[0])
            noise = max(noise_floor(times[0]), noise_floor(times[1]))
            yield Compared(cell, median(times[0]), median(times[1]), ratio, noise)
    if not found:
        raise NothingMeasured(f"no cell that both {first} and {second} have: does one predate the benchmarks?")


def unpack(root: Path, commit: str, folder: Path) -> None:
    """Write a commit's package into ``folder``; git's own records are not touched, as a work tree would."""
    try:
        packed = git.archive(root, commit, "highway_bench")
    except BadInput as error:
        raise BadInput(f"commit {commit[:8]} has no package to measure") from error
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        extract(archive, folder)

