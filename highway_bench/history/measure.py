"""Measure this checkout's point, or the points of a range of commits, by running asv.

asv rewrites its files in place, so it writes into a scratch folder. A point is moved to its place when it is whole, so
that a killed run leaves nothing behind that counts.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured, writing
from highway_bench.history import git
from highway_bench.history.builds import NotBuilt, NotImported, build, check_import, path_of
from highway_bench.history.files import (
    BENCHMARKS,
    MACHINE,
    Result,
    copy_file,
    read_result,
    read_results,
    result_paths,
    write_json,
)
from highway_bench.history.machine import Machine, check_clash, series_name, write_entry
from highway_bench.history.paths import CONFIGURATION, Paths, asv, exclusive
from highway_bench.history.points import HASH, NO_COMMIT
from highway_bench.history.suite.series import SERIES
from highway_bench.history.verdicts import forget_verdicts, gap_path, store_gap


@dataclass
class Measured:
    """A run's results by commit, the reason for each commit without any, the benchmarks that failed, and other lines.

    ``dirty``: the point is that of a tree with uncommitted changes, which is shown and never stored.
    """

    machine: str
    results: dict[str, Result] = field(default_factory=dict)
    without: list[HighwayBenchError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    dirty: bool = False


@exclusive
def measure_here(
    paths: Paths,
    machine: Machine,
    *,
    quick: bool = True,
    commit: str | None = None,
    out: Path | None = None,
    replace: bool = False,
) -> Measured:
    """Measure this checkout in its present state.

    The point of a clean tree is stored, unless its commit has one: then nothing is measured, except with ``replace``,
    where a full point can replace a quick one, or where series of the stored one failed. Without git, ``commit`` names
    the commit; if it is not given, the import of the point must name it. ``out`` is another folder for the point.
    Raises ``BadInput`` for a ``commit`` that is not HEAD, and for ``out`` where changes are not committed;
    ``NotImported`` for a package that fails to import.
    """
    with_git = git.has_git(paths.root)
    if commit and not with_git and not HASH.match(commit):
        raise BadInput(f"without git, --commit must be a commit's hash, not {commit!r}")
    measured = Measured(machine.name)
    if with_git:
        git.check_not_shallow(paths.root)
        measured.dirty = git.is_dirty(paths.root)
        if measured.dirty and out is not None:
            raise BadInput("uncommitted changes: what --out writes would pass for HEAD's point elsewhere")
        if commit and git.commit_of(paths.root, commit) != git.commit_of(paths.root, "HEAD"):
            raise BadInput(f"this checkout is not {commit}: check it out, or give it as a range ({commit}^..{commit})")
    full = git.commit_of(paths.root, "HEAD") if with_git else commit or NO_COMMIT
    target = out or (paths.uncommitted if measured.dirty else paths.results)
    check_clash(machine.entry, paths.results, target)
    if target == paths.uncommitted or out is not None:
        known = None
    elif not with_git:
        raise BadInput("no git here, or asv.conf.json is not committed yet: commit it, or name a folder with --out")
    else:
        known = stored(target, machine.name).get(full)
    if known is not None and not is_wanted(known, quick, replace):
        measured.results[full] = known
        measured.lines.append(f"{full[:8]} has a point already; --replace measures it again")
        return measured
    with writing(target):  # before minutes of measuring
        target.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=target).close()
    try:
        check_import(paths, full, machine.device, path_of(paths.root))
    except NotImported as reason:
        if target == paths.results:
            store_gap(target / machine.name, full, reason)
        raise
    point = asv_run(
        paths,
        machine,
        full,
        ["-E", "current", "--set-commit-hash", full],
        quick,
        measured,
        {} if with_git else {"dvcs": "given"},
        {"HIGHWAY_BENCH_HISTORY_COMMIT": full, "HIGHWAY_BENCH_HISTORY_TIME": str(int(1000 * time.time()))},
    )
    if with_git and not measured.dirty and (git.is_dirty(paths.root) or git.commit_of(paths.root, "HEAD") != full):
        changed = f"this checkout was changed while {full[:8]} was measured"
        if out is not None:  # the caller requires HEAD's values
            raise BadInput(f"{changed}, so its values belong to no commit: measure it again")
        measured.lines.append(changed)
        measured.dirty, target = True, paths.uncommitted
    if target == paths.uncommitted:  # a point of earlier changes
        shutil.rmtree(target, ignore_errors=True)
    measured.results[full] = moved(point, target, git.tree_of(paths.root, full) if target == paths.results else None)
    return measured


@exclusive
def measure_range(paths: Paths, machine: Machine, span: str, *, quick: bool = True, replace: bool = False) -> Measured:
    """Build, install and measure each commit of the range ``span``, oldest first; each point is stored at once.

    Commits with a point of this python and torch (a full one unless ``quick``) are left out unless ``replace``. Commits
    that do not build or import, or predate the benchmarks, get no point and are listed in ``without``. Raises
    ``BadInput`` for uncommitted changes in the benchmarks, which all commits use.
    """
    git.check_not_shallow(paths.root)
    shared = (paths.benchmarks.relative_to(paths.root).as_posix(), "highway_bench", CONFIGURATION)
    if git.is_dirty(paths.root, *shared):
        raise BadInput(
            f"uncommitted changes in {' or '.join(shared)}: every commit of a range is measured with this checkout's "
            "benchmarks, so commit or stash them first"
        )
    commits = git.commits_in(paths.root, span) if ".." in span else [git.commit_of(paths.root, span)]
    measured = Measured(machine.name)
    check_clash(machine.entry, paths.results)
    known = stored(paths.results, machine.name)
    wanted = [one for one in commits if one not in known or is_wanted(known[one], quick, replace)]
    measured.results |= {one: known[one] for one in commits if one not in wanted}
    if len(wanted) < len(commits):
        measured.lines.append(f"{len(commits) - len(wanted)} of {len(commits)} commits have a point already")
    for one in wanted:
        try:
            packages = build(paths, one)  # where asv finds it
            check_import(paths, one, machine.device, [str(packages), *sys.path], packages)
            listed = paths.working / "commits.txt"
            with writing(listed):
                listed.write_text(one, encoding="utf-8")
            point = asv_run(paths, machine, one, ["-E", "commits", f"HASHFILE:{listed}"], quick, measured)
        except (NotBuilt, NotImported, NothingMeasured) as reason:
            measured.without.append(reason)
            if not isinstance(reason, NothingMeasured):
                store_gap(paths.results / machine.name, one, reason)
        else:
            measured.results[one] = moved(point, paths.results, git.tree_of(paths.root, one))
    if not measured.results:
        raise type(measured.without[-1])(f"nothing was measured: {'; '.join(map(str, measured.without))}")
    return measured


def is_wanted(known: Result, quick: bool, replace: bool) -> bool:
    """Whether a commit that has the point ``known`` is measured again.

    With ``replace``; without it where series of the point failed, or where a full point replaces a quick one. A quick
    point never replaces a full one, and ``BadInput`` is raised where it was asked to.
    """
    if quick and known.is_full:
        if replace:
            raise BadInput(f"{known.commit[:8]} has a full point, and a quick one has less: give --full with --replace")
        return False
    return replace or (known.is_current and (bool(known.failures) or (not quick and not known.is_full)))


def stored(folder: Path, machine: str) -> dict[str, Result]:
    """A machine's points of this python and torch in a folder of points, by commit."""
    results = (one for one in read_results(folder) if one.machine == machine)
    return {one.commit: one for one in results if one.data["env_name"] == series_name()}


def asv_run(
    paths: Paths,
    machine: Machine,
    commit: str,
    arguments: Sequence[str],
    quick: bool,
    measured: Measured,
    changes: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Result:
    """The point of ``commit`` that asv measured, in the scratch folder; adds what failed to ``measured``.

    Raises ``NothingMeasured``, with the reason, where it has no value.
    """
    write_entry(machine.entry)
    shutil.rmtree(paths.scratch, ignore_errors=True)
    if quick:  # each value of each benchmark costs asv a process
        names = "|".join(series.benchmark for series in SERIES if series.quick)
        arguments = [*arguments, "--bench", rf"\.({names})\b"]
    asv(
        paths,
        "run",
        ["--machine", machine.name, "--show-stderr", "--no-pull", *arguments],
        {"results_dir": paths.scratch, **(changes or {})},
        {
            "HIGHWAY_BENCH_HISTORY": "quick" if quick else "full",
            "HIGHWAY_BENCH_HISTORY_DEVICE": machine.device,
            **(environment or {}),
        },
    )
    results = [read_result(path) for path in result_paths(paths.scratch / machine.name)]
    for result in results:
        if result.points:
            measured.failed += [f"{result.commit[:8]} {name}" for name in result.failures]
            paths.list_benchmarks(paths.scratch / BENCHMARKS)
            return result
    if failed := [name for result in results for name in result.failures]:
        raise NothingMeasured(f"{commit[:8]}: n/a, all {len(failed)} series failed, and asv's output says why")
    raise NothingMeasured(
        f"{commit[:8]}: n/a, it predates the benchmarks, or has none of their blocks (is its package installed?)"
    )


def moved(point: Result, target: Path, tree: str | None = None) -> Result:
    """Move a point, with its machine's entry, from the scratch folder into a folder of points, where it replaces one
    that may be under the machine's former name, with the verdicts on that and the gap.

    A stored point gets ``tree``, the hash of its commit's files.
    """
    folder, before = target / point.machine, stored(target, point.machine).get(point.commit)
    copy_file(point.path.with_name(MACHINE), folder / MACHINE)
    write_json(folder / point.path.name, point.data | ({"tree": tree} if tree else {}))
    forget_verdicts(folder, point.commit)
    gap_path(folder, point.commit).unlink(missing_ok=True)
    if before is not None and before.path.parent != folder:
        before.path.unlink()
    shutil.rmtree(point.path.parents[1])
    return read_result(folder / point.path.name)
