"""Compare two commits: steps timed in turn, in several pairs of processes; the ratio with its interval.

Each commit's package is unpacked into a folder of its own. One process of each commit runs, and the two take their
steps in turn (A B, B A, A B, …), so the machine's drift affects both alike. Some conditions last as long as a process,
such as its memory layout, and would look like a difference between the commits. Therefore several fresh pairs are
started, and the interval is that of the pairs' ratios, not of the steps.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.archives import extract
from highway_bench.history.asv_command import AsvFailed
from highway_bench.history.paths import Paths
from highway_bench.measure.statistics import IntervalEstimate, median_interval, paired_ratio

WORKER = Path(__file__).with_name("compare_worker.py")
PAIRS = 8
LEAST_PAIRS = 6  # with five, the widest interval of a median covers it with 94 %
STEPS = 6
WARM = 2

TimedCell = tuple[str, str, int]
Times = tuple[list[float], list[float]]  # one cell's seconds of each step, with the first and with the second commit


@dataclass
class Compared:
    """One cell at two commits: the seconds of its steps at each, and each pair's ratio of the second to the first."""

    cell: TimedCell
    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def add(self, first: list[float], second: list[float]) -> None:
        """Add a pair of processes: the seconds of its steps with each commit, taken in turn."""
        self.first += first
        self.second += second
        self.ratios.append(paired_ratio(second, first).value)

    @property
    def name(self) -> str:
        block, family, depth = self.cell
        return f"{block}, {family}, depth {depth}"

    @property
    def ratio(self) -> IntervalEstimate:
        """The median of the pairs' ratios, with an interval that is valid for every distribution."""
        return median_interval(self.ratios)

    @property
    def verdict(self) -> str:
        if self.ratio.low > 1:
            return "slower"
        return "faster" if self.ratio.high < 1 else "no difference detected"


class CommitProcess:
    """A process that runs one commit's package. It reads a request as a line of JSON, and writes a line in response."""

    def __init__(self, name: str, package: Path, benches: Path) -> None:
        self.name = name
        paths = os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH"))))
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "OMP_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
            "HIGHWAY_BENCH_BENCHES": str(benches),
        }
        # -P: the worker's own folder, which is this checkout's package, must not be on the path.
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=package,
        )

    def request(self, **message: Any) -> Any:
        """The response to ``message``; raises ``AsvFailed`` if the process has died."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise AsvFailed(f"measuring {self.name} failed with status {self.process.wait()}; its output is above")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # it died before it read a request
            self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # in a step whose time is no longer needed
            self.process.kill()
            self.process.wait()


def compare(
    paths: Paths,
    first: str,
    second: str,
    cells: Sequence[TimedCell],
    *,
    pairs: int = PAIRS,
    steps: int = STEPS,
    device: str = "cpu",
    report: Callable[[str], None] = lambda line: None,
) -> list[Compared]:
    """Compare two commits over ``cells`` (block, family, depth), in ``pairs`` of processes with ``steps`` of each cell.

    A commit may be compared with itself: any difference is chance then. Cells that one of the commits lacks are left
    out; ``report`` receives a line for each, and one for each pair that is done. Raises ``NothingMeasured`` where no
    cell remains, ``BadInput`` for commits that do not exist or have no package.
    """
    if pairs < LEAST_PAIRS:
        raise BadInput(f"an interval of 95 % needs {LEAST_PAIRS} pairs of processes or more, not {pairs}")
    if steps < 1:
        raise BadInput(f"a pair takes one step or more of each commit, not {steps}")
    commits = [git.commit_of(paths.root, name) for name in (first, second)]
    compared = {cell: Compared(cell) for cell in cells}
    with ExitStack() as stack:
        packages = []
        for commit in commits:
            packages.append(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="highway-bench-"))))
            unpack(paths.root, commit, packages[-1])
        benches = paths.root / "benches/history/cells.py"
        sides = list(zip((first, second), packages, strict=True))
        for number in range(pairs):
            for cell, times in one_pair(sides, benches, list(compared), steps, device, swapped=number % 2 == 1):
                if isinstance(times, str):
                    report(f"left out: {compared.pop(cell).name}: {times}")
                else:
                    compared[cell].add(*times)
            report(f"{number + 1} of {pairs} pairs of processes")
            if not compared:
                raise NothingMeasured(f"no cell that both {first} and {second} have: does one predate the benchmarks?")
    return list(compared.values())


def one_pair(
    sides: Sequence[tuple[str, Path]],
    benches: Path,
    cells: Sequence[TimedCell],
    steps: int,
    device: str,
    *,
    swapped: bool,
) -> Iterator[tuple[TimedCell, Times | str]]:
    """Each cell's seconds with both commits, from fresh processes; or a text that says why there are none.

    ``sides`` are the commits' names and packages. If ``swapped``, the second one is started, prepared and timed first.
    """
    turn = -1 if swapped else 1
    with ExitStack() as processes:
        workers = []
        for name, package in sides[::turn]:
            workers.append(CommitProcess(name, package, benches))
            processes.callback(workers[-1].close)
        for cell in cells:
            times = in_turn(workers, cell, steps, device)
            yield cell, times if isinstance(times, str) or not swapped else (times[1], times[0])


def in_turn(sides: Sequence[CommitProcess], cell: TimedCell, steps: int, device: str) -> Times | str:
    """The seconds of a cell's steps with each commit, taken in turn; or a text that says which commit lacks it."""
    block, family, depth = cell
    for one in sides:
        response = one.request(do="prepare", block=block, family=family, depth=depth, device=device)
        if not response["ready"]:
            return f"{one.name}: {response['reason']}"
    times: Times = ([], [])
    for number in range(WARM + steps):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            seconds = float(sides[side].request(do="step"))
            if number >= WARM:
                times[side].append(seconds)
    return times


def unpack(root: Path, commit: str, folder: Path) -> None:
    """Write a commit's package into ``folder``. Unlike a work tree, this changes nothing in the repository."""
    try:
        packed = git.archive(root, commit, "highway_bench")
    except BadInput as error:
        raise BadInput(f"commit {commit[:8]} has no package to measure") from error
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        extract(archive, folder)
