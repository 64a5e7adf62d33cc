"""How often the gate is wrong: pools of processes on unchanged and on slowed code, and judgements drawn from them.

``collect`` times processes for some minutes, next to other programs if a load is named, and adds a line for each to the
pool; run it at different hours. ``judge`` draws judgements from the pool, each process being used once, and prints
their verdicts. The load ``work`` starts nothing: it is what the machine did anyhow, such as trainings.

    nox -s proof -- gate collect --load 2 --minutes 10
    nox -s proof -- gate judge

A line of a pool is one process, or one pair of processes. Kinds of lines: ``same``, a pair on the same code;
``compute`` and ``memory``, a pair whose second process does 5 % more work, bound by arithmetic or by memory
(``planted_worker``); ``point``, one process of a point.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benches.proofs.lines import add_line, collected, read_lines
from benches.proofs.loads import LOADS, run_command, running
from highway_bench.history import WINDOW
from highway_bench.history.builds import path_of
from highway_bench.history.compare import EXCLUDED, LEAST, Compared, Precision, joint, one_pair
from highway_bench.history.files import Point
from highway_bench.history.gate import verdict_on
from highway_bench.history.lines import LEVEL, TREND, Line, SuspectedRegression, TrackedSeries, rises
from highway_bench.history.machine import this_machine
from highway_bench.history.paths import Paths
from highway_bench.history.suite.measuring import RATIO, SAMPLES, SECONDS
from highway_bench.history.suite.process import PackageProcess
from highway_bench.history.suite.series import HistoryCell
from highway_bench.history.verdicts import GateVerdict
from highway_bench.provenance.git import git
from highway_bench.report.columns import markdown_table

ROOT = Path(__file__).resolve().parents[2]
POOL = ROOT / "docs/data/gate-proof.jsonl"
BOOT = Path("/proc/sys/kernel/random/boot_id")  # a rented machine is another one after each start
PLANTED = ("compute", "memory")
RUNS = 4  # whole runs, of one point each, that are completed together
PLANTED_AT = slice(None, None, 4)  # of the series, those with a planted slow-down
POINT_PROCESSES = 3
DRIFT = 1.01  # a commit

Verdicts = Mapping[str, GateVerdict | None]


class PlantedProcess(PackageProcess):
    """A process whose steps take 5 % longer."""

    worker = Path(__file__).with_name("planted_worker.py")


def collect(load: str, minutes: float, pool: Path) -> None:
    """Add lines to the pool until the time is up: points, the pairs that the runs on them need, planted slow-downs."""
    cells = list(Paths.of(ROOT).suite().cells(RATIO, quick=True))
    about = {
        "load": load,
        "commit": git(ROOT, "rev-parse", "HEAD"),
        "machine": this_machine("cpu").name,
        "boot": BOOT.read_text(encoding="utf-8")[:8] if BOOT.is_file() else "",
    }
    end, source = time.monotonic() + 60 * minutes, random.SystemRandom()
    with running(load):
        for kind, wanted in turns(cells, load, pool):
            if time.monotonic() >= end:
                break
            number = source.randrange(2**16)  # the core is that of the number
            values = point(wanted, number) if kind == "point" else pair(wanted, kind, number)
            now = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "load_average": round(os.getloadavg()[0], 1)}
            add_line(pool, {"kind": kind, **now, **about, "values": values})


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
    lines = read_lines(pool)
    runs = [*whole_runs(lines), *whole_runs(lines, DRIFT)]
    return {name for under, run in runs if under == load for name, verdict in run.items() if verdict is None}


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
    return " ".join(map(str, cell)).strip()


def point(cells: Sequence[HistoryCell], number: int) -> dict[str, float]:
    """Each cell's ratio to its yard-stick in a new process."""
    values = {}
    with PackageProcess(path_of(ROOT), "cpu", number) as process:
        for family, depth in dict.fromkeys((cell.family, cell.depth) for cell in cells):
            blocks = [cell.block for cell in cells if (cell.family, cell.depth) == (family, depth)]
            where = {"family": family, "depth": depth, "samples": SAMPLES, "seconds": SECONDS, "seed": number}
            for block, found in process.ask("ratios", blocks=blocks, **where).items():
                values[name_of(HistoryCell(block, family, depth))] = round(found["ratio"], 5)
    return values


def of_kind(kind: str, pool: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [line for line in pool if line["kind"] == kind]


def judgements(pool: Sequence[dict[str, Any]]) -> Iterator[GateVerdict]:
    """The verdicts of single series, drawn from pairs of processes."""
    for name in sorted({name for line in pool for name in line["values"]}):
        pairs = iter([line["values"][name] for line in pool if name in line["values"]])
        while (verdict := draw(pairs, 1)) is not None:
            yield verdict


def draw(pairs: Iterator[Sequence[float]], series: int, slower: float = 1.0) -> GateVerdict | None:
    """A verdict on one of ``series``, from as many pairs as the gate would take; ``None`` if there are too few left.

    ``slower`` multiplies every ratio.
    """
    confidence = joint(series)
    precision = Precision(half_width=LEAST - 1, confidence=confidence, excluded=EXCLUDED)
    compared = Compared(HistoryCell("", "", 0), seconds=([1.0], [1.0]), wall=[2.0])
    for ratio, _ in pairs:
        compared.ratios.append(slower * ratio)
        if compared.is_done(precision):
            return verdict_on(
                SuspectedRegression(TrackedSeries(RATIO, compared.cell, "", ""), 1, 2, "", ""), compared, confidence
            ).verdict
    return None


def points(pool: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, float]]]:
    """The points of a pool in the order in which they were measured: the load, and each series' median."""
    under: dict[str, list[dict[str, float]]] = {}
    for line in pool:
        if line["kind"] != "point":
            continue
        processes = under.setdefault(line["load"], [])
        processes.append(line["values"])
        if len(processes) == POINT_PROCESSES:
            yield line["load"], {name: median(values[name] for values in processes) for name in processes[0]}
            processes.clear()


def proposals(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[tuple[str, dict[str, float]]]:
    """The load of each run of the gate, and the series that it proposes, with the factor by which each is slower.

    Each point is judged once, against the points before it since the machine was started, whatever the load was then: a
    machine's history is not all idle either. With a ``drift``, one series of each run, in turn, is slower by that
    factor at each of the newest ``TREND`` points.
    """
    drifting = itertools.cycle(sorted({name for line in pool for name in line["values"]}))
    for _, of_boot in itertools.groupby(pool, key=lambda line: line["boot"]):
        yield from proposals_on(list(points(list(of_boot))), drifting, drift)


def proposals_on(
    measured: Sequence[tuple[str, dict[str, float]]], drifting: Iterator[str], drift: float
) -> Iterator[tuple[str, dict[str, float]]]:
    """The runs on the points since one start of the machine."""
    names = sorted({name for _, values in measured for name in values})
    for newest in range(LEVEL if drift == 1 else TREND, len(measured)):
        shown = measured[max(0, newest - WINDOW - LEVEL + 1) : newest + 1]
        commits = [str(number) for number in range(len(shown))]
        slower_by = dict.fromkeys(names, [1.0] * len(shown))
        slower_by[next(drifting)] = [drift ** max(0, number - len(shown) + 1 + TREND) for number in range(len(shown))]
        lines: dict[TrackedSeries, Line] = {}
        for name, by in slower_by.items():
            values = [Point(one * of[name], 0.0, POINT_PROCESSES) for one, (_, of) in zip(by, shown, strict=True)]
            cell = HistoryCell(*name.split(" "))
            lines[TrackedSeries(RATIO, cell, "", name)] = list(zip(commits, values, strict=True))
        proposed = {rise.of.name: int(rise.good) for rise in rises(lines, commits[-WINDOW:])}
        yield shown[-1][0], {name: slower_by[name][-1] / slower_by[name][good] for name, good in proposed.items()}


def whole_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> Iterator[tuple[str, Verdicts]]:
    """Whole runs of the gate: the load, and the verdict on each series that a run proposed.

    The verdict is ``None`` if too few pairs are left. With a ``drift``, only the series that drifted has one, if it was
    proposed.
    """
    pairs: dict[tuple[str, str], list[list[float]]] = {}
    for line in pool:
        if line["kind"] == "same":
            for name, value in line["values"].items():
                pairs.setdefault((line["load"], name), []).append(value)
    left = {key: iter(values) for key, values in pairs.items()}
    for load, proposed in proposals(pool, drift):
        yield (
            load,
            {
                name: draw(left.get((load, name), iter(())), len(proposed), slower)
                for name, slower in proposed.items()
                if drift == 1 or slower > 1
            },
        )


def complete_runs(pool: Sequence[dict[str, Any]], drift: float = 1.0) -> dict[str, list[Verdicts]]:
    """The whole runs for which the pool has enough pairs, by load."""
    complete: dict[str, list[Verdicts]] = {}
    for load, verdicts in whole_runs(pool, drift):
        if None not in verdicts.values():
            complete.setdefault(load, []).append(verdicts)
    return complete


def judge(pool: Path) -> list[str]:
    """The verdicts under each load, as tables in Markdown."""
    lines = collected(pool)
    heads = [
        "load",
        "series judged, same code",
        "alarms, same code",
        "undecided, same code",
        "series judged, slower by 5 %",
        "median slow-down",
        "alarms, slower",
        "undecided, slower",
        "steps waited for the core",
    ]
    rows: list[list[object]] = []
    by_load = {load: here for load in LOADS if (here := [line for line in lines if line["load"] == load])}
    same = {load: list(judgements(of_kind("same", here))) for load, here in by_load.items()}
    slower = {
        load: [verdict for kind in PLANTED for verdict in judgements(of_kind(kind, here))]
        for load, here in by_load.items()
    }
    for (load, here), (_, unchanged), (_, planted) in zip(*map(with_all, (by_load, same, slower)), strict=True):
        slowed = [value[0] for line in here if line["kind"] in PLANTED for value in line["values"].values()]
        waits = [value[1] for line in here if line["kind"] != "point" for value in line["values"].values()]
        rows.append(
            [
                load,
                len(unchanged),
                unchanged.count(GateVerdict.REGRESSION),
                unchanged.count(GateVerdict.UNDECIDED),
                len(planted),
                f"{100 * (median(slowed) - 1):.1f} %" if planted else "–",
                planted.count(GateVerdict.REGRESSION),
                planted.count(GateVerdict.UNDECIDED),
                f"{100 * median(waits):.0f} %" if waits else "–",
            ]
        )
    whole: list[list[object]] = []
    for load, runs in with_all(complete_runs(lines)):
        alarms, undecided = (
            sum(kind in verdicts.values() for verdicts in runs)
            for kind in (GateVerdict.REGRESSION, GateVerdict.UNDECIDED)
        )
        whole.append([load, len(runs), alarms, undecided, f"{sum(map(len, runs)) / len(runs):.1f}" if runs else "–"])
    drifting: list[list[object]] = [
        [load, len(runs), sum(GateVerdict.REGRESSION in verdicts.values() for verdicts in runs)]
        for load, runs in with_all(complete_runs(lines, DRIFT))
    ]
    tables = {
        tuple(heads): rows,
        ("load", "whole runs", "with an alarm", "with a series undecided", "series proposed a run"): whole,
        ("load", "runs with one series slower by 1 % at each of ten commits", "found"): drifting,
    }
    return [
        line
        for heading, entries in tables.items()
        for line in ("", *markdown_table(heading, [list(map(str, entry)) for entry in entries]))
    ][1:]


def with_all(by_load: Mapping[str, list[Any]]) -> list[tuple[str, list[Any]]]:
    """What there is under each load, in the order of the loads, and under all of them."""
    return [
        *((load, by_load[load]) for load in LOADS if load in by_load),
        ("all", [*itertools.chain(*by_load.values())]),
    ]


def main() -> None:
    """Run the command that the arguments name."""
    run_command(__doc__, POOL, ("minutes", 10.0), collect, judge)


if __name__ == "__main__":
    main()
