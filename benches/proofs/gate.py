"""How often the gate is wrong: pools of processes on unchanged and on slowed code, and judgements drawn from them.

``collect`` times processes for some minutes, next to other programs if a load is named, and adds a line for each to the
pool; run it at different hours. ``judge`` draws judgements from the pool, each process being used once, and prints
their verdicts. The load ``work`` starts nothing: it is what the machine did anyhow, such as trainings.

    nox -s proof -- gate collect --load 2 --minutes 10
    nox -s proof -- gate judge
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

from benches.proofs.gate_judgements import (
    DRIFT,
    POINT_PROCESSES,
    complete_runs,
    judgements,
    of_kind,
    whole_runs,
)
from benches.proofs.lines import add_line, collected, read_lines
from benches.proofs.loads import LOADS, run_command, running
from highway_bench.history.builds import path_of
from highway_bench.history.compare import Compared, one_pair
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
