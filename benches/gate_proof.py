"""How often the gate is wrong: pools of processes on unchanged and on slowed code, and judgements drawn from them.

``collect`` times processes for some minutes, beside a load if asked, and adds a line for each to the pool; run it at
different hours. ``judge`` draws judgements from the pool, each process being used once, and prints their verdicts.

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
    "1": [WHILE + "pass"],
    "2": [WHILE + "pass"] * 2,
    "memory": [WHILE + "bytes(b)"],
}
PLANTED = ("compute", "memory")
POINT_PROCESSES = 3
DRIFT = 1.01  # a commit


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
    """Add lines to the pool, in turn of each kind, until the time is up."""
    cells = list(Paths.of(ROOT).suite().cells(RATIO, quick=True))
    about = {"beside": load, "commit": git(ROOT, "rev-parse", "HEAD"), "machine": this_machine("cpu").name}
    end, source = time.monotonic() + 60 * minutes, random.SystemRandom()
    turns = itertools.cycle(("same", "point", "same", "point", "compute", "same", "point", "memory"))
    for _ in range(source.randrange(8)):
        next(turns)
    with beside(load):
        while time.monotonic() < end:
            kind, number = next(turns), source.randrange(2**16)  # the core is that of the number
            values = point(cells, number) if kind == "point" else pair(cells, kind, number)
            line = {"kind": kind, "at": datetime.now(UTC).isoformat(timespec="seconds"), **about, "values": values}
            pool.parent.mkdir(parents=True, exist_ok=True)
            with pool.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


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
            values[" ".join(map(str, cell))] = [round(compared.ratios[0], 5), round(compared.waited, 3)]
    return values


def point(cells: Sequence[HistoryCell], number: int) -> dict[str, float]:
    """Each cell's ratio to its yard-stick in a new process."""
    values = {}
    with PackageProcess(path_of(ROOT), "cpu", number) as process:
        for family, depth in dict.fromkeys((cell.family, cell.depth) for cell in cells):
            blocks = [cell.block for cell in cells if (cell.family, cell.depth) == (family, depth)]
            where = {"family": family, "depth": depth, "samples": SAMPLES, "seconds": SECONDS, "seed": number}
            for block, found in process.ask("ratios", blocks=blocks, **where).items():
                values[f"{block} {family} {depth}"] = round(found[0], 5)
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


def whole_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[tuple[int, Counter[GateVerdict]]]:
    """Whole runs of the gate: how many series each proposed, and the verdicts on these.

    The points are those of the pool in the order in which they were measured; each is judged once, against the points
    before it. With a ``drift``, each of the newest ``TREND`` points is slower by that factor than the one before.
    """
    names = sorted({name for line in pool if line["kind"] == "point" for name in line["values"]})
    processes = [line["values"] for line in pool if line["kind"] == "point"]
    points = []
    for start in range(0, len(processes) - POINT_PROCESSES + 1, POINT_PROCESSES):
        of_one = processes[start : start + POINT_PROCESSES]
        points.append({name: median(values[name] for values in of_one) for name in names})
    same = [line["values"] for line in pool if line["kind"] == "same"]
    pairs = {name: iter([values[name] for values in same]) for name in names}
    for newest in range(LEVEL, len(points)):
        shown = points[max(0, newest - WINDOW - LEVEL + 1) : newest + 1]
        commits = [str(number) for number in range(len(shown))]
        slower_by = [drift ** max(0, number - len(shown) + TREND) for number in range(len(shown))]
        lines: dict[Followed, Line] = {}
        for name in names:
            values = [Point(by * one[name], 0.0, POINT_PROCESSES) for by, one in zip(slower_by, shown, strict=True)]
            cell = HistoryCell(*name.split(" "))  # type: ignore[arg-type]
            lines[Followed(RATIO, cell, "", name)] = list(zip(commits, values, strict=True))
        proposed = list(rises(lines, commits[-WINDOW:]))
        verdicts: Counter[GateVerdict] = Counter()
        for rise in proposed:
            slower = slower_by[-1] / slower_by[int(rise.good)]
            verdicts[draw(pairs[rise.of.name], len(proposed), slower) or GateVerdict.UNDECIDED] += 1
        yield len(proposed), verdicts


def judge(pool: Path) -> None:
    """Print the verdicts beside each load."""
    if not pool.is_file():
        raise SystemExit(f"there is no pool at {pool}: collect first")
    lines = [json.loads(line) for line in pool.read_text(encoding="utf-8").splitlines()]
    print_row(
        "beside", "series judged, same code", "alarms", "undecided", "planted 5 %", "found", "undecided", "waited"
    )
    for load in LOADS:
        here = [line for line in lines if line["beside"] == load]
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
            f"{100 * (median(slowed or [1]) - 1):.1f} %",
            planted[GateVerdict.REGRESSION],
            planted[GateVerdict.UNDECIDED],
            f"{100 * median(waits or [0]):.0f} %",
        )
    print_row("beside", "whole runs", "with an alarm", "with a series undecided", "series proposed a run")
    for load in LOADS:
        runs = list(whole_runs([line for line in lines if line["beside"] == load]))
        alarms, undecided = (
            sum(bool(verdicts[kind]) for _, verdicts in runs)
            for kind in (GateVerdict.REGRESSION, GateVerdict.UNDECIDED)
        )
        proposed = sum(number for number, _ in runs) / max(1, len(runs))
        print_row(load, len(runs), alarms, undecided, f"{proposed:.1f}")
    print_row("beside", "runs after ten commits, each 1 % slower", "found")
    for load in LOADS:
        runs = list(whole_runs([line for line in lines if line["beside"] == load], DRIFT))
        print_row(load, len(runs), sum(bool(verdicts[GateVerdict.REGRESSION]) for _, verdicts in runs))


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
