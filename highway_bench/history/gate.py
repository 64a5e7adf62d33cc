"""Gate: has something regressed in recent commits, on any machine, and since when?

asv's own step detection proposes, over the whole line; a look at the newest point proposes what asv cannot see yet,
since a step of one commit may be a spike. Every proposal must exceed the series' own noise, and where this machine and
this checkout measured it, must be there again when it is measured anew. A gate that measured nothing never passes.
"""

from __future__ import annotations

import re
import shutil
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.files import Point, Result, read_json, read_results
from highway_bench.history.layout import Layout
from highway_bench.history.measure import Machine, measure_here
from highway_bench.history.noise import is_exact, known_noise, tolerated
from highway_bench.history.publish import publish

WINDOW = 10  # measured commits of a machine that count as recent
LEVEL = 5  # points before the newest that give its level


@dataclass(frozen=True)
class Regression:
    """A series that got worse: between which values, and by which commit. ``good`` is the last commit before it that
    has a point; the culprit lies after it, up to and with ``commit``."""

    series: str
    machine: str
    before: float
    after: float
    tolerated: float
    commit: str
    good: str
    again: float | None = None  # the value of a re-run
    remark: str = ""

    @property
    def change(self) -> str:
        return f"{100 * (self.after / self.before - 1):+.3g} %" if self.before else f"{self.after - self.before:+.3g}"


@dataclass
class Verdict:
    """What the gate found: regressions, proposals that a re-run did not confirm, and how much was looked at."""

    regressions: list[Regression] = field(default_factory=list)
    dismissed: list[Regression] = field(default_factory=list)
    series: int = 0
    machines: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def gate(layout: Layout, here: Machine | None = None, *, window: int = WINDOW, confirm: bool = True,
         quick: bool = True) -> Verdict:
    """Look for regressions in the last ``window`` measured commits of every machine.

    With ``here``, proposals of this machine are measured again (``confirm``). Raises ``NothingMeasured`` where HEAD
    has no point on any machine: an old history must not vouch for a commit that nobody measured.
    """
    if window < 1:
        raise BadInput(f"a window has one commit at least, not {window}")
    try:
        published = publish(layout, layout.working / "gate", scripts=False)
    except NothingMeasured as reason:
        raise NothingMeasured(f"{reason}; a gate that measured nothing does not pass") from reason
    verdict = Verdict(lines=list(published.lines), machines=published.machines)
    line = git.line_of(layout.root)
    order = {commit: number for number, commit in enumerate(line)}
    results = [result for result in read_results(layout.shown) if result.commit in order]
    if not any(result.commit == line[-1] and result.points() for result in results):
        raise NothingMeasured(f"nothing was measured at HEAD ({line[-1][:8]}) on any machine: "
                              f"run nox -s history -- HEAD")
    by_machine: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda one: order[one.commit]):
        by_machine.setdefault(result.machine, []).append(result)

    proposed: dict[tuple[str, str], Regression] = {}
    for machine, many in by_machine.items():
        for found in newest_steps(machine, many, window, known_noise(layout, machine)):
            proposed[found.series, found.machine] = found
    for found in asv_steps(published.html, by_machine, window, layout):
        proposed[found.series, found.machine] = found  # asv saw the whole line: it knows the commit better
    verdict.series = sum(len({series for result in many for series in result.points()}) for many in by_machine.values())

    for found in _confirmed(layout, list(proposed.values()), here if confirm else None, verdict, quick):
        (verdict.regressions if found.again is None or found.again > found.before + found.tolerated
         else verdict.dismissed).append(found)
    verdict.regressions.sort(key=lambda one: (one.machine, one.series))
    return verdict


def newest_steps(machine: str, results: Sequence[Result], window: int, noise: dict[str, float]) -> Iterable[Regression]:
    """Series whose newest point, if it is recent, lies above the level of those before it."""
    recent = {result.commit for result in results[-window:]}
    lines: dict[tuple[str, str], list[tuple[str, Point]]] = {}
    for result in results:
        for series, point in result.points().items():
            # A new torch, python or version starts a new line, as it does on the pages.
            lines.setdefault((series, _identity(result, series)), []).append((result.commit, point))
    for (series, identity), points in lines.items():
        commit, last = points[-1]
        if commit not in recent or len(points) < 2 or identity != _identity(results[-1], series):
            continue
        before = [point for _, point in points[-1 - LEVEL:-1]]
        level = before[-1].value if is_exact(series) else statistics.median(point.value for point in before)
        allowed = tolerated(series, before, last, noise.get(series))
        if last.value > level + allowed:
            yield Regression(series, machine, level, last.value, allowed, commit, points[-2][0])


def _identity(result: Result, series: str) -> str:
    name, columns = series.partition("(")[0], result.data["result_columns"]
    row = result.data["results"].get(name, [])
    version = dict(zip(columns, row, strict=False)).get("version")
    return f"{version} {result.data['params'].get('python')} {result.data.get('requirements')}"


def asv_steps(html: Path, by_machine: dict[str, list[Result]], window: int, layout: Layout) -> Iterable[Regression]:
    """asv's regressions whose first bad commit is recent, held against the noise of the points on both sides."""
    index, found = read_json(html / "index.json"), read_json(html / "regressions.json")
    commit_of = {int(revision): commit for revision, commit in index["revision_to_hash"].items()}
    for series, path, _where, _index, _last, _best, jumps in found["regressions"]:
        machine = next((part.removeprefix("machine-") for part in Path(path).parts if part.startswith("machine-")), "")
        results = by_machine.get(machine, [])
        recent = {result.commit for result in results[-window:]}
        for _from, to, before, after in jumps:
            commit = commit_of[to]
            if commit in recent:
                regression = _step(series, machine, commit, before, after, results, known_noise(layout, machine))
                if regression is not None:
                    yield regression


def _step(series: str, machine: str, commit: str, before: float, after: float, results: Sequence[Result],
          noise: dict[str, float]) -> Regression | None:
    earlier: list[tuple[str, Point]] = []
    bad: Point | None = None
    for result in results:
        point: Any = result.points().get(series)
        if point is None:
            continue
        if result.commit == commit:
            bad = point
            break
        earlier.append((result.commit, point))
    if bad is None or not earlier:
        return None
    allowed = tolerated(series, [point for _, point in earlier[-LEVEL:]], bad, noise.get(series))
    if after <= before + allowed:
        return None
    return Regression(series, machine, before, after, allowed, commit, earlier[-1][0])


def _confirmed(layout: Layout, proposed: list[Regression], here: Machine | None, verdict: Verdict,
               quick: bool) -> list[Regression]:
    """The proposals, those of this machine with the value that a re-run of this checkout gave."""
    mine = [one for one in proposed if here is not None and one.machine == here.name]
    others = [replace(one, remark="not measured again") for one in proposed if one not in mine]
    if not mine or here is None:
        return others
    folder = layout.working / "again"
    shutil.rmtree(folder, ignore_errors=True)
    patterns = [f"^{re.escape(one.series)}$" for one in mine]
    measured = measure_here(layout, here, quick=quick and not any("Families.time" in one.series for one in mine),
                            out=folder, series=patterns, only=sorted({cell_of(one.series) for one in mine}))
    points = {series: point for result in measured.results.values() for series, point in result.points().items()}
    verdict.lines.append(f"{len(mine)} measured again")
    return others + [replace(one, again=points[one.series].value, remark=f"again {points[one.series].value:.4g}")
                     if one.series in points else replace(one, remark="a re-run gave no value") for one in mine]


def cell_of(series: str) -> str:
    """``block|family|depth`` of a series: where its benchmark's parameters leave one out, what the benches take."""
    name, _, rest = series.partition("(")
    values = [value.strip().strip("'") for value in rest.rstrip(")").split(",")]
    if ".Families." in name:
        return f"{values[0]}|{values[1]}|4"
    return f"{values[0]}|dense|{values[1] if len(values) > 1 else 10}"
