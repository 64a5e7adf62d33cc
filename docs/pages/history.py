"""The history's page: from the committed points of asv, and from the pools of processes that judge the gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median, stdev
from typing import Any

import pandas as pd

from highway_bench.asv_suite.series import SERIES, Judged, Suite
from highway_bench.history.files import Result, read_results
from highway_bench.history.lines import Followed, Line, lines_of
from highway_bench.provenance.machine import labels
from highway_bench.report import columns as column
from highway_bench.report.columns import Shown, shown
from highway_bench.report.figures import Picture
from highway_bench.report.figures.base import head, joined, legend, panels, settings
from highway_bench.report.figures.drawing import line_with_band
from highway_bench.report.format import counted, three
from highway_bench.report.style import styles

RATIO = SERIES[0]
LEAST = 3  # points of a line whose scatter is shown
NEWEST = 40  # commits in the figure
LABELS = 20  # the most commits that are named below the figure


@dataclass(frozen=True)
class MachineHistory:
    """One machine's points, oldest commit first; ``label`` is its name as it is shown."""

    machine: str
    label: str
    results: Sequence[Result]
    suite: Suite

    @cached_property
    def lines(self) -> dict[Followed, Line]:
        return lines_of(self.results, self.suite, {}, {})

    @property
    def facts(self) -> Mapping[str, str]:
        """Its points, their commits and versions."""
        first, last = self.results[0], self.results[-1]
        days = [datetime.fromtimestamp(1e-3 * one.data["date"], UTC).date().isoformat() for one in (first, last)]
        torch = ", ".join(sorted({str(one.data["params"].get("torch")) for one in self.results}))
        facts = {
            "points": f"{counted(len({one.commit for one in self.results}), 'commit')}, of {days[0]} to {days[1]}",
            "commits": f"{first.commit[:8]} to {last.commit[:8]}",
            "torch": torch,
        }
        full = sum(one.is_full for one in self.results)
        current = sum(one.is_current for one in self.results)
        if not first.is_told_apart:
            facts["machine"] = "several processors had this name, so nothing is compared with these points"
        facts["values"] = f"{full} full points, {current - full} quick ones, {len(self.results) - current} older ones"
        return facts

    @property
    def ratios(self) -> Shown:
        """One row per family and depth: each block's median ratio to the yard-stick, and its scatter over commits."""
        records: dict[tuple[str, int], dict[str, Any]] = {}
        for followed, line in self.lines.items():
            if followed.series == RATIO:
                cell, values = followed.cell, [point.value for _, point in line]
                text = three(median(values))
                text += f" ({three(100 * stdev(values) / median(values))} %)" if len(values) >= LEAST else ""
                own = records.setdefault((cell.family, cell.depth), {"family": cell.family, "depth": cell.depth})
                own |= {cell.block: text, "points": max(len(values), own.get("points", 0))}
        blocks = list(styles({name for own in records.values() for name in own} - {"family", "depth", "points"}))
        columns = [column.words("family", "family"), column.whole("depth", "depth"), column.whole("points", "points")]
        columns += [column.words(block, block) for block in blocks]
        note = f"Median over commits (standard deviation of a point, from {LEAST} points on)."
        table = pd.DataFrame(records[key] for key in sorted(records))
        return shown("ratios", "A step's time over the yard-stick's", table, columns, note=note)

    @property
    def changed_counts(self) -> Shown:
        """One row per series of exact counts that is not equal at every commit."""
        records = []
        for followed, line in self.exact.items():
            for (_, before), (commit, after) in pairwise(line):
                if before.value != after.value:
                    change = {"before": before.value, "after": after.value, "since": commit[:8]}
                    records.append({"series": followed.series.title, "of": str(followed.cell), **change})
        columns = [
            column.words("series", "series"),
            column.words("of", "of"),
            column.whole("before", "before"),
            column.whole("after", "after"),
            column.words("since", "since"),
        ]
        return shown("counts", "Counts that changed", pd.DataFrame(records), columns)

    @property
    def exact(self) -> dict[Followed, Line]:
        """The lines of exact counts with several points."""
        return {
            followed: line
            for followed, line in self.lines.items()
            if followed.series.judged is Judged.EXACT and len(line) > 1
        }

    def pictures(self) -> Iterator[Picture]:
        """The ratios of the deep family's shallowest stack by commit, if there are several commits."""
        lines = {
            followed.cell: dict(line)
            for followed, line in self.lines.items()
            if followed.series == RATIO and followed.cell.family == self.suite.deep
        }
        depth = min((cell.depth for cell in lines), default=0)
        own = {cell.block: line for cell, line in lines.items() if cell.depth == depth}
        every = dict.fromkeys(one.commit for one in self.results)
        commits = [commit for commit in every if any(commit in line for line in own.values())][-NEWEST:]
        if len(commits) > 1 and self.results[0].is_told_apart:
            yield _picture(self.machine, self.label, f"{self.suite.deep}, depth {depth}", own, commits)


def _picture(
    machine: str, label: str, what: str, lines: Mapping[str, Mapping[str, Any]], commits: Sequence[str]
) -> Picture:
    style = styles(lines)
    spreads = {}
    with settings():
        figure, (axes,) = panels(1, 1, 3.3)
        for block, own in style.items():
            values = [lines[block][commit].value if commit in lines[block] else math.nan for commit in commits]
            line_with_band(axes, range(len(commits)), values, own, markersize=3.5)
            if known := [value for value in values if not math.isnan(value)]:
                spreads[block] = 100 * (max(known) / min(known) - 1)
        step = math.ceil(len(commits) / LABELS)
        axes.set_xticks(range(0, len(commits), step), [commit[:8] for commit in commits[::step]], rotation=90)
        axes.tick_params(axis="x", labelsize=6.5)
        axes.set_xlabel("commit, oldest first")
        axes.set_ylabel("step time ÷ yard-stick's")
        widest = max(spreads, key=lambda block: spreads[block])
        title = (
            f"{what}: over {counted(len(commits), 'commit')} {widest}'s ratio moved most, by {three(spreads[widest])} %"
        )
        head(figure, title)
        legend(figure, style, lines=True)
    alt = [f"{block}: largest {three(spread)} % above the smallest" for block, spread in spreads.items()]
    return Picture(
        machine, title, f"Ratio by commit. {joined(alt)}", f"Points of {label}; each line is one block.", figure
    )


def machines(results: Path, suite: Suite) -> list[MachineHistory]:
    """The history of every machine with points in the folder ``results``."""
    by_date = sorted(read_results(results), key=lambda one: (one.machine, one.data["date"]))
    label = labels(one.machine for one in by_date)
    return [
        MachineHistory(name, label[name], list(own), suite)
        for name, own in groupby(by_date, key=lambda one: one.machine)
    ]


def judged(proof: str, lines: Path) -> str:
    """The tables in Markdown of the script ``benches/PROOF.py`` for a file of lines; empty without one."""
    return "\n".join(import_module(f"benches.{proof}").judge(lines)) if lines.is_file() else ""
