"""How often the gate is wrong: pools of processes on unchanged and on slowed code, and judgements drawn from them.

``collect`` times processes for some minutes, beside a load if asked, and adds a line for each to the pool; run it at
different hours. ``judge`` draws judgements from the pool, each process being used once, and prints their verdicts.
The load ``work`` starts nothing: it is what the machine did anyhow, such as trainings. Lines have the load average.

    nox -s gate-proof -- collect --beside 2 --minutes 10
    nox -s gate-proof -- judge

Kinds of lines: ``same``, a pair of processes of HEAD; ``compute`` and ``memory``, a pair whose second process does 5 %
more work, bound by arithmetic or by memory (``planted_worker``); ``point``, one process of a point.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from highway_bench.asv_suite.measuring import RATIO, SAMPLES, SECONDS
from highway_bench.asv_suite.process import PackageProcess
from highway_bench.asv_suite.series import HistoryCell
from highway_bench.history import Paths
from highway_bench.history.compare import Compared, Precision, one_pair, path_of
from highway_bench.history.files import Point
from highway_bench.history.gate import CONFIDENCE, LEAST, WINDOW, GateVerdict, verdict_on
from highway_bench.history.lines import LEVEL, TREND, Followed, Line, Rise, rises
from highway_bench.history.machine import this_machine
from highway_bench.provenance.git import git

ROOT = Path(__file__).resolve().parents[1]
POOL = ROOT / "docs/data/gate-proof.jsonl"
WHILE = "import os\nparent = os.getppid()\nb = bytearray(2**27)\nwhile os.getppid() == parent: "
LOADS = {  # busy loops and copies of memory, as other programs on the machine; they end with this one
    "idle": [],
    "work": [],
    "1": [WHILE + "pass"],
    "2": [WHILE + "pass"] * 2,
    "memory": [WHILE + "bytes(b)"],
}
PLANTED = ("compute", "memory")
POINT_PROCESSES = 3
DRIFT = 1.01  # a commit
RUNS = 4  # whole runs, of one point each, that are completed together
PLANTED_AT = slice(None, None, 4)  # of the series, those with a planted slow-down


class PlantedProcess(PackageProcess):
    """A process whose steps take 5 % longer."""

    worker = Path(__file__).with_name("planted_worker.py")


@contextmanager
def beside(load: str) -> Iterator[None]:
    """Run the programs of a load meanwhile."""
    programs = [subprocess.Popen([sys.executable, "-c", code]) for code in LOADS[load]]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def collect(load: str, minutes: float, pool: Path) -> None:
    """Add lines to the pool until the time is up: points, the pairs that the runs on them need, planted slow-downs."""
    cells = list(Paths.of(ROOT).suite().cells(RATIO, quick=True))
    about = {"beside": load, "commit": git(ROOT, "rev-parse", "HEAD"), "machine": this_machine("cpu").name}
    end, source = time.monotonic() + 60 * minutes, random.SystemRandom()
    with beside(load):
        for kind, wanted in turns(cells, load, pool):
            if time.monotonic() >= end:
                break
            number = source.randrange(2**16)  # the core is that of the number
            values = point(wanted, number) if kind == "point" else pair(wanted, kind, number)
            now = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load": round(os.getloadavg()[0], 1)}
            line = {"kind": kind, **now, **about, "values": values}
            pool.parent.mkdir(parents=True, exist_ok=True)
            with pool.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def turns(cells: Sequence[HistoryCell], load: str, pool: Path) -> Iterator[tuple[str, Sequence[HistoryCell]]]:
    """What to time next, without end: kinds of lines, with the series that are timed."""
    while True:
        while short := short_of_pairs(load, pool):
            yield "same", [cell for cell in cells if name_of(cell) in short]
        for kind in PLANTED * 2:
            yield kind, cells[PLANTED_AT]
        for _ in range(RUNS * POINT_PROCESSES):
            yield "point", cells


def short_of_pairs(load: str, pool: Path) -> set[str]:
    """The series for which the pool has too few pairs to complete the whole runs under a load."""
    here = [line for line in read(pool) if line["beside"] == load]
    runs = [*whole_runs(here), *whole_runs(here, DRIFT)]
    return {name for run in runs for name, verdict in run.items() if verdict is None}


def pair(cells: Sequence[HistoryCell], kind: str, number: int) -> dict[str, list[float]]:
    """Each cell's ratio in a new pair of processes, with the share of time in which the steps waited for the core."""
    order, values = random.Random(number), {}
    second = PackageProcess if kind == "same" else PlantedProcess
    os.environ["PLANTED"] = kind
    with ExitStack() as stack:
        sides = [stack.enter_context(side(path_of(ROOT), "cpu", number)) for side in (PackageProcess, second)]
        for cell in cells:
            compared = Compared(cell)
            one_pair(sides, compared, order)
            values[name_of(cell)] = [round(compared.ratios[0], 5), round(compared.waited, 3)]
    return values


def name_of(cell: HistoryCell) -> str:
    """A cell as it is named in the pool."""
    return " ".join(map(str, cell))


def read(pool: Path) -> list[dict[str, Any]]:
    """The lines of a pool; none where there is no file yet."""
    if not pool.is_file():
        return []
    return [json.loads(line) for line in pool.read_text(encoding="utf-8").splitlines()]


def point(cells: Sequence[HistoryCell], number: int) -> dict[str, float]:
    """Each cell's ratio to its yard-stick in a new process."""
    values = {}
    with PackageProcess(path_of(ROOT), "cpu", number) as process:
        for family, depth in dict.fromkeys((cell.family, cell.depth) for cell in cells):
            blocks = [cell.block for cell in cells if (cell.family, cell.depth) == (family, depth)]
            where = {"family": family, "depth": depth, "samples": SAMPLES, "seconds": SECONDS, "seed": number}
            for block, found in process.ask("ratios", blocks=blocks, **where).items():
                values[name_of(HistoryCell(block, family, depth))] = round(found[0], 5)
    return values


def judgements(pool: Sequence[dict[str, Any]], slower: float = 1.0) -> Iterator[GateVerdict]:
    """The verdicts of single series, drawn from pairs of processes; ``slower`` multiplies every ratio."""
    for name in sorted({name for line in pool for name in line["values"]}):
        pairs = iter([line["values"][name] for line in pool if name in line["values"]])
        while (verdict := draw(pairs, 1, slower)) is not None:
            yield verdict


def draw(pairs: Iterator[Sequence[float]], series: int, slower: float = 1.0) -> GateVerdict | None:
    """A verdict on one of ``series``, from as many pairs as the gate would take; ``None`` if there are too few left."""
    confidence = 1 - 2 * (1 - CONFIDENCE) / series
    precision = Precision(half_width=LEAST - 1, confidence=confidence)
    compared = Compared(HistoryCell("", "", 0), seconds=([1.0], [1.0]), wall=[2.0])
    for ratio, _ in pairs:
        compared.ratios.append(slower * ratio)
        if compared.is_done(precision):
            return verdict_on(Rise(Followed(RATIO, compared.cell, "", ""), 1, 2, "", ""), compared, confidence).verdict
    return None


def proposals(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[dict[str, float]]:
    """The series that each run of the gate proposes, with the factor by which each is really slower.

    The points are those of the pool in the order in which they were measured; each is judged once, against the points
    before it. With a ``drift``, one series of each run, in turn, is slower by that factor at each of the newest
    ``TREND`` points.
    """
    processes = [line["values"] for line in pool if line["kind"] == "point"]
    names = sorted({name for values in processes for name in values})
    points = []
    for start in range(0, len(processes) - POINT_PROCESSES + 1, POINT_PROCESSES):
        of_one = processes[start : start + POINT_PROCESSES]
        points.append({name: median(values[name] for values in of_one) for name in names})
    drifting = itertools.cycle(names)
    for newest in range(LEVEL if drift == 1 else TREND, len(points)):
        shown = points[max(0, newest - WINDOW - LEVEL + 1) : newest + 1]
        commits = [str(number) for number in range(len(shown))]
        slower_by = dict.fromkeys(names, [1.0] * len(shown))
        slower_by[next(drifting)] = [drift ** max(0, number - len(shown) + 1 + TREND) for number in range(len(shown))]
        lines: dict[Followed, Line] = {}
        for name, by in slower_by.items():
            values = [Point(one * of[name], 0.0, POINT_PROCESSES) for one, of in zip(by, shown, strict=True)]
            cell = HistoryCell(*name.split(" "))
            lines[Followed(RATIO, cell, "", name)] = list(zip(commits, values, strict=True))
        proposed = {rise.of.name: int(rise.good) for rise in rises(lines, commits[-WINDOW:])}
        yield {name: slower_by[name][-1] / slower_by[name][good] for name, good in proposed.items()}


def whole_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[dict[str, GateVerdict | None]]:
    """Whole runs of the gate: the verdict on each series that a run proposed, ``None`` if too few pairs are left.

    With a ``drift``, the verdict on the series that drifted, if it was proposed.
    """
    names = {name for line in pool for name in line["values"]}
    pairs = {
        name: iter([line["values"][name] for line in pool if line["kind"] == "same" and name in line["values"]])
        for name in names
    }
    for proposed in proposals(pool, drift):
        yield {
            name: draw(pairs[name], len(proposed), slower)
            for name, slower in proposed.items()
            if drift == 1 or slower > 1
        }


def complete_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> list[dict[str, GateVerdict | None]]:
    """The whole runs for which the pool has enough pairs."""
    return [verdicts for verdicts in whole_runs(pool, drift) if None not in verdicts.values()]


def judge(pool: Path) -> None:
    """Print the verdicts under each load."""
    lines = read(pool)
    if not lines:
        raise SystemExit(f"there is no pool at {pool}: collect first")
    by_load = {load: here for load in LOADS if (here := [line for line in lines if line["beside"] == load])}
    print_row(
        "load",
        "series judged, same code",
        "alarms",
        "undecided",
        "series judged, slower by 5 %",
        "median slow-down",
        "alarms",
        "undecided",
        "steps waited for the core",
    )
    for load, here in by_load.items():
        same = Counter(judgements([line for line in here if line["kind"] == "same"]))
        planted: Counter[GateVerdict] = Counter()
        for kind in PLANTED:
            planted += Counter(judgements([line for line in here if line["kind"] == kind]))
        slowed = [value[0] for line in here if line["kind"] in PLANTED for value in line["values"].values()]
        waits = [value[1] for line in here if line["kind"] != "point" for value in line["values"].values()]
        print_row(
            load,
            same.total(),
            same[GateVerdict.REGRESSION],
            same[GateVerdict.UNDECIDED],
            planted.total(),
            f"{100 * (median(slowed) - 1):.1f} %" if slowed else "–",
            planted[GateVerdict.REGRESSION],
            planted[GateVerdict.UNDECIDED],
            f"{100 * median(waits):.0f} %" if waits else "–",
        )
    print_row("load", "whole runs", "with an alarm", "with a series undecided", "series proposed a run")
    for load, here in by_load.items():
        runs = complete_runs(here)
        alarms, undecided = (
            sum(kind in verdicts.values() for verdicts in runs)
            for kind in (GateVerdict.REGRESSION, GateVerdict.UNDECIDED)
        )
        print_row(load, len(runs), alarms, undecided, f"{sum(map(len, runs)) / len(runs):.1f}" if runs else "–")
    print_row("load", "runs with one series slower by 1 % at each of ten commits", "found")
    for load, here in by_load.items():
        runs = complete_runs(here, DRIFT)
        print_row(load, len(runs), sum(GateVerdict.REGRESSION in verdicts.values() for verdicts in runs))


def print_row(*values: object) -> None:
    """Print a row of a table in Markdown."""
    sys.stdout.write(f"| {' | '.join(map(str, values))} |\n")


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("collect", "judge"))
    parser.add_argument("--beside", choices=tuple(LOADS), default="idle")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--pool", type=Path, default=POOL)
    given = parser.parse_args()
    if given.command == "collect":
        collect(given.beside, given.minutes, given.pool)
    else:
        judge(given.pool)


if __name__ == "__main__":
    main()
