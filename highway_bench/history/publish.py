"""Publish: asv's pages of all machines, from the stored points."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.errors import NothingMeasured
from highway_bench.history import git
from highway_bench.history.asv_pages import (
    adapt_pages,
    arrange,
    draw_worst,
    keep_measured,
    label_gaps,
    list_regressions,
    name_series,
)
from highway_bench.history.files import (
    BENCHMARKS,
    MACHINE,
    copy_file,
    machine_folders,
    read_json,
    read_results,
    use_present_names,
    write_json,
)
from highway_bench.history.gate import rises_to_list
from highway_bench.history.machine import entry, write_entry
from highway_bench.history.paths import Paths, asv, exclusive
from highway_bench.history.scripts import use_own_scripts
from highway_bench.history.site import link_report
from highway_bench.history.verdicts import read_gaps

DISCOVERY = "discovery"  # asv requires a machine's name even to list benchmarks; no result is saved under it


@dataclass
class Published:
    """The pages' folder, the machines and the number of points on them, and lines for the user."""

    html: Path
    machines: list[str]
    points: int
    lines: list[str] = field(default_factory=list)


@exclusive
def publish(paths: Paths, *, scripts: bool = True) -> Published:
    """Write asv's pages into ``paths.html``; raises ``NothingMeasured`` without any point."""
    git.check_not_shallow(paths.root)
    lines: list[str] = []
    shutil.rmtree(paths.shown, ignore_errors=True)
    if paths.results.is_dir():
        shutil.copytree(paths.results, paths.shown)
    if _add_uncommitted(paths):
        lines.append("the newest point is of this tree with its uncommitted changes; it is shown, not stored")
    use_present_names(paths.shown)
    machines = _drop_off_line(paths, lines)
    if not machines:
        raise NothingMeasured("there are no points to publish: run highway-bench history run first")
    discover(paths)
    paths.list_benchmarks(paths.shown / BENCHMARKS)
    results = list(read_results(paths.shown))
    keep_measured(paths.shown / BENCHMARKS, results)
    # The gate's regressions are listed below, instead of asv's.
    changes: dict[str, Any] = {
        "results_dir": paths.shown,
        "html_dir": paths.html,
        "regressions_first_commits": {".*": None},
    }
    if "show_commit_url" not in paths.configuration() and (page := git.web_page(paths.root)):
        changes["show_commit_url"] = page
    asv(paths, "publish", ["--no-pull"], changes, quiet=True)
    revisions, on_line = git.revisions(paths.root), git.line_of(paths.root)
    every = {gap for name in machines for gap in read_gaps(paths.shown / name) if gap.commit in on_line}
    gaps = sorted(every, key=lambda gap: revisions[gap.commit])
    lines += [f"no point: {gap.reason}" for gap in gaps]
    index = read_json(paths.html / "index.json")
    arrange(index, {result.commit for result in results})
    label_gaps(index, {gap: git.date_of(paths.root, gap.commit) for gap in gaps}, revisions)
    draw_worst(paths.html, results, revisions)
    project = str(paths.configuration()["project"])
    list_regressions(paths.html, index, rises_to_list(paths), revisions, project)
    write_json(paths.html / "index.json", index)
    name_series(paths.html, index, paths.suite())
    if reason := adapt_pages(paths.html):
        lines.append(reason)
    if scripts:
        if reason := use_own_scripts(paths.html, paths.working / "scripts"):
            lines.append(f"the pages load their scripts from public networks, so they do not work offline: {reason}")
        link_report(paths.html / "index.html")
    return Published(paths.html, list(machines), machines.total(), lines)


@exclusive
def discover(paths: Paths) -> None:
    """Write the list of this checkout's benchmarks, which are those that asv shows, into ``shown``.

    The list is written each time and never committed, since it would conflict in merges.
    """
    folder = paths.working / "discovered"
    write_entry(entry(DISCOVERY, None))
    asv(
        paths,
        "run",
        ["--bench", "just-discover", "-E", "current", "--machine", DISCOVERY, "--no-pull"],
        {"results_dir": folder},
        quiet=True,
    )
    paths.shown.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / BENCHMARKS, paths.shown / BENCHMARKS)


def _drop_off_line(paths: Paths, lines: list[str]) -> Counter[str]:
    """Remove points from ``shown`` that are not on HEAD's first-parent line, with a line for each machine.

    Returns the number of the remaining points by machine.
    """
    on_line = git.line_of(paths.root)
    counts: Counter[str] = Counter()
    off: dict[str, list[str]] = {}
    for result in read_results(paths.shown):
        if result.commit in on_line:
            counts[result.path.parent.name] += 1
        else:
            off.setdefault(result.path.parent.name, []).append(result.commit[:8])
            result.path.unlink()
    lines += [f"{name}: not shown, since not on HEAD's first-parent line: {', '.join(of)}" for name, of in off.items()]
    for folder in machine_folders(paths.shown):
        if folder.name not in counts:
            shutil.rmtree(folder)
    return counts


def _add_uncommitted(paths: Paths) -> bool:
    """Show the uncommitted tree's point instead of HEAD's, if it still has changes and HEAD is the same."""
    if not git.is_dirty(paths.root):
        shutil.rmtree(paths.uncommitted, ignore_errors=True)
        return False
    head = git.commit_of(paths.root, "HEAD")
    newest = [result for result in read_results(paths.uncommitted) if result.commit == head]
    for result in newest:
        for name in (result.path.name, MACHINE):
            copy_file(result.path.with_name(name), paths.shown / result.machine / name)
    return bool(newest)
