"""Publish: asv's pages of all machines, from the committed history and what was measured since."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from highway_bench.errors import NothingMeasured
from highway_bench.history import git
from highway_bench.history.files import BENCHMARKS, MACHINE, copy_file, read_result, result_paths
from highway_bench.history.layout import Layout
from highway_bench.history.lock import alone
from highway_bench.history.machine import entry, write_entry
from highway_bench.history.measure import AsvFailed, asv
from highway_bench.history.merge import mend, merge_recorded, read_working
from highway_bench.history.scripts import use_own_scripts

HTML = Path("asv/html/index.html")  # asv's first page, in the folder of reports
DISCOVERY = "discovery"  # asv wants a machine's name even to list benchmarks; no result is ever saved under it


@dataclass
class Published:
    """Where the pages are, how many points of how many machines they show, and what is to be said of them."""

    html: Path
    machines: list[str]
    points: int
    lines: list[str] = field(default_factory=list)


@alone
def publish(layout: Layout, html: Path | None = None, *, scripts: bool = True) -> Published:
    """Write asv's pages into ``html``, by default the layout's; raises ``NothingMeasured`` where there is no point."""
    git.check_whole(layout.root)
    lines = merge_recorded(layout)
    shutil.rmtree(layout.shown, ignore_errors=True)
    if layout.results.is_dir():
        shutil.copytree(layout.results, layout.shown)
    if _add_uncommitted(layout, lines):
        lines.append("the newest point is of this tree with its uncommitted changes; it is shown, not recorded")
    machines = _drop_off_line(layout, lines)
    if not machines:
        raise NothingMeasured("there are no points to publish: run nox -s history, or nox -s bench, first")
    discover(layout)
    target = html or layout.html
    status = asv(layout, "publish", ["--no-pull"], {"results_dir": layout.shown, "html_dir": target}, quiet=True)
    if status:
        raise AsvFailed(f"asv publish ended with status {status}; its own words stand above")
    if scripts:
        reason = use_own_scripts(target, layout.working / "scripts")
        if reason:
            lines.append(f"the pages load their scripts from public networks, and need one: {reason}")
        link_report(target / "index.html")
    return Published(target, list(machines), sum(machines.values()), lines)


@alone
def discover(layout: Layout) -> None:
    """List today's benchmarks into ``shown``. The list decides what asv shows, is made anew each time, and is never
    committed: it is the one file that would conflict."""
    folder = layout.working / "discovered"
    write_entry(entry(DISCOVERY, None))
    status = asv(
        layout,
        "run",
        ["--bench", "just-discover", "-E", "current", "--machine", DISCOVERY, "--no-pull"],
        {"results_dir": folder},
        name="discover",
        quiet=True,
    )
    if status:
        raise AsvFailed("asv cannot import the benchmarks; its own words stand above")
    layout.shown.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / BENCHMARKS, layout.shown / BENCHMARKS)


def _drop_off_line(layout: Layout, lines: list[str]) -> dict[str, int]:
    """Take points off what is shown that are not on HEAD's first-parent line, and say so; the others' number by
    machine."""
    on_line = set(git.line_of(layout.root))
    kept: dict[str, int] = {}
    for folder in sorted(path for path in layout.shown.glob("*") if path.is_dir()):
        results = [read_result(path) for path in result_paths(folder)]
        off = [result for result in results if result.commit not in on_line]
        if off:
            names = ", ".join(result.commit[:8] for result in off)
            lines.append(f"{folder.name}: not shown, since not on HEAD's first-parent line: {names}")
        for result in off:
            result.path.unlink()
        if len(results) > len(off):
            kept[folder.name] = len(results) - len(off)
        else:
            shutil.rmtree(folder)
    return kept


def _add_uncommitted(layout: Layout, lines: list[str]) -> bool:
    """Lay the points of the uncommitted tree over those of HEAD, if the tree still is uncommitted and HEAD the same."""
    if not layout.uncommitted.is_dir():
        return False
    head = git.commit_of(layout.root, "HEAD")
    if not git.is_dirty(layout.root):
        shutil.rmtree(layout.uncommitted)
        return False
    points, broken = read_working(layout.uncommitted)
    lines += mend(points, broken)
    newest = [path for path, result in points.items() if result.commit == head]
    for path in newest:
        target = layout.shown / path.parent.name
        copy_file(path, target / path.name)
        copy_file(path.with_name(MACHINE), target / MACHINE)
    return bool(newest)


def link_report(page: Path) -> None:
    """A link from asv's page to the report beside it, where there are both, and no link yet."""
    report = page.parents[2] / "page" / "index.html"
    if not (page.is_file() and report.is_file()):
        return
    mark, link = '<li id="nav-li-" class="active">', '<li><a href="../../page/index.html">Report</a></li>\n\t'
    text = page.read_text(encoding="utf-8")
    if mark in text and link not in text:
        page.write_text(text.replace(mark, link + mark, 1), encoding="utf-8")
