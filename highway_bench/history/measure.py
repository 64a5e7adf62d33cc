"""Measure this checkout's point, or the points of a range of commits, by running asv."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.asv_command import AsvFailed, asv
from highway_bench.history.environment import series_name
from highway_bench.history.files import MACHINE, Result, copy_file, read_result, result_paths
from highway_bench.history.importing import HASH, NO_COMMIT
from highway_bench.history.machine import Machine, check_clash, write_entry
from highway_bench.history.merge import merge_recorded
from highway_bench.history.paths import CONFIGURATION, Paths
from highway_bench.history.working_folder import exclusive

# A quick run times the core blocks in dense stacks of 10 and 50 alone, since every start with torch costs two seconds,
# and leaves out the deep cells that ``measure_commit`` skips then. asv preserves the values of series that a run does
# not select, and writes n/a over selected ones without a value: a quick run must not select what only a full one
# measures.
QUICK_SERIES = (
    r"^(?!.*\.(Families|Others)\.time_step)"
    r"(?!.*\.Depths\.(time_step|track_(peak|saved)_bytes)\(.*, 100\))"
    r"(?!.*\.Depths\.track_(log_loss|steps_to_threshold)\(.*, (50|100)\))"
)
SHARED_SOURCES = ("benches/history", "highway_bench/blocks", "highway_bench/families", CONFIGURATION)
FULL_ONLY = "blocks.Families.time_step"  # a benchmark that only a full run measures


@dataclass
class Measured:
    """A run's results by commit, a line for each commit without any, and the benchmarks that failed."""

    machine: str
    results: dict[str, Result] = field(default_factory=dict)
    without: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    dirty: bool = False
    folder: Path | None = None


@exclusive
def measure_here(
    paths: Paths,
    machine: Machine,
    *,
    quick: bool = True,
    commit: str | None = None,
    out: Path | None = None,
    series: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Measured:
    """Measure this checkout in its present state.

    Results of a tree with uncommitted changes go into a folder of their own: they are shown, never recorded. Without
    git, ``commit`` names the commit; if it is not given, the import of the results must name it. ``out`` is another
    folder for the results, ``series`` are asv's patterns of benchmarks, ``only`` the cells to measure. Raises
    ``BadInput`` for a ``commit`` that is not HEAD.
    """
    with_git = git.has_git(paths.root)
    if commit and not with_git and not HASH.match(commit):
        raise BadInput(f"without git, --commit must be a commit's hash, not {commit!r}")
    measured = Measured(machine.name)
    if with_git:
        git.check_not_shallow(paths.root)
        measured.dirty = git.is_dirty(paths.root)
        if commit and git.commit_of(paths.root, commit) != git.commit_of(paths.root, "HEAD"):
            raise BadInput(f"this checkout is not {commit}: check it out, or give it as a range ({commit}^..{commit})")
    if with_git and out is None:
        measured.lines += merge_recorded(paths)
        if measured.dirty:  # the folder may have a point of earlier changes
            shutil.rmtree(paths.uncommitted, ignore_errors=True)
    measured.folder = out or (paths.uncommitted if measured.dirty else paths.results)
    check_clash(machine.entry, paths.recorded, measured.folder)
    full = git.commit_of(paths.root, "HEAD") if with_git else commit or NO_COMMIT
    changes: dict[str, object] = {"results_dir": measured.folder.resolve()}
    if not with_git:
        changes |= {"dvcs": "given"}
    arguments = ["-E", "current", "--set-commit-hash", full]
    for pattern in series:
        arguments += ["-b", pattern]
    environment = {
        "HIGHWAY_BENCH_HISTORY_COMMIT": full,
        "HIGHWAY_BENCH_HISTORY_TIME": str(int(1000 * time.time())),
        "HIGHWAY_BENCH_HISTORY_ONLY": " ".join(only),
    }
    before = _contents(measured.folder / machine.name, [full])
    _asv_run(paths, machine, arguments, quick, changes, environment)
    if with_git and not measured.dirty and (git.is_dirty(paths.root) or git.commit_of(paths.root, "HEAD") != full):
        changed = f"this checkout was changed while {full[:8]} was measured"
        if out is not None:  # the caller requires HEAD's values
            for path in _contents(out / machine.name, [full]):
                _restore(path, before)
            raise BadInput(f"{changed}, so its values belong to no commit: measure it again")
        measured.lines.append(changed)
        measured.dirty, measured.folder = True, _moved(measured.folder, paths.uncommitted, machine, full, before)
    return _collect(measured, [full], [full], before)


@exclusive
def measure_range(paths: Paths, machine: Machine, span: str, *, quick: bool = True, again: bool = False) -> Measured:
    """Build, install and measure each commit of the range ``span``.

    Commits with a point of this python and torch (a full one unless ``quick``) are left out unless ``again``. Commits
    that do not build, or predate the benchmarks, get no point and are listed in ``without``. Raises ``BadInput`` for
    uncommitted changes in the files that all of them use: the benchmarks, and the names of blocks and families.
    """
    git.check_not_shallow(paths.root)
    if git.is_dirty(paths.root, *SHARED_SOURCES):
        raise BadInput(
            f"uncommitted changes in {', '.join(SHARED_SOURCES)}: every commit of a range is measured with this "
            "checkout's benchmarks, so commit or stash them first"
        )
    commits = git.commits_in(paths.root, span) if ".." in span else [git.commit_of(paths.root, span)]
    measured = Measured(machine.name, folder=paths.results)
    measured.lines += merge_recorded(paths)
    check_clash(machine.entry, paths.recorded, paths.results)
    known = (
        {}
        if again
        else {
            commit
            for commit, result in _by_commit(paths.results / machine.name).items()
            if result.points and (quick or FULL_ONLY in result.data["results"])
        }
    )
    wanted = [commit for commit in commits if commit not in known]
    if len(wanted) < len(commits):
        measured.lines.append(f"{len(commits) - len(wanted)} of {len(commits)} commits have a point already")
    before: dict[Path, bytes] = {}
    if wanted:
        paths.working.mkdir(parents=True, exist_ok=True)
        listed = paths.working / "commits.txt"
        listed.write_text("\n".join(wanted), encoding="utf-8")
        before = _contents(paths.results / machine.name, wanted)
        _asv_run(paths, machine, ["-E", "commits", f"HASHFILE:{listed}"], quick, {}, {})
    return _collect(measured, commits, wanted, before)


def _asv_run(
    paths: Paths,
    machine: Machine,
    arguments: Sequence[str],
    quick: bool,
    changes: Mapping[str, object],
    environment: Mapping[str, str],
) -> None:
    write_entry(machine.entry)
    environment = {
        **environment,
        "HIGHWAY_BENCH_HISTORY": "quick" if quick else "full",
        "HIGHWAY_BENCH_HISTORY_DEVICE": machine.device,
    }
    if quick and "-b" not in arguments:
        arguments = [*arguments, "-b", QUICK_SERIES]
    status = asv(
        paths, "run", ["--machine", machine.name, "--show-stderr", "--no-pull", *arguments], changes, environment
    )
    if status not in (0, 2):  # 2: some benchmark failed, and the result files say which
        raise AsvFailed(f"asv run ended with status {status}; its output is above")


def _by_commit(folder: Path) -> dict[str, Result]:
    """The folder's results of this python and torch, by commit."""
    results = [read_result(path) for path in result_paths(folder)] if folder.is_dir() else []
    return {result.commit: result for result in results if result.data["env_name"] == series_name()}


def _contents(folder: Path, commits: Sequence[str]) -> dict[Path, bytes]:
    """The result files of ``commits`` in a machine's folder, by path, before asv overwrites them."""
    return {path: path.read_bytes() for commit in commits for path in folder.glob(f"{commit[:8]}-*.json")}


def _moved(folder: Path, target: Path, machine: Machine, commit: str, before: Mapping[Path, bytes]) -> Path:
    """Move the new results from a folder of points into ``target``, and restore the folder's contents ``before``."""
    shutil.rmtree(target, ignore_errors=True)
    copy_file(folder / machine.name / MACHINE, target / machine.name / MACHINE)
    for path in _contents(folder / machine.name, [commit]):
        copy_file(path, target / machine.name / path.name)
        _restore(path, before)
    return target


def _collect(
    measured: Measured, commits: Sequence[str], wanted: Sequence[str], before: Mapping[Path, bytes]
) -> Measured:
    """Read asv's files: the values of all ``commits``, the failures of those that were ``wanted``.

    A file without any value must not count as a point: its contents ``before`` are restored, or it is removed.
    """
    assert measured.folder is not None
    results = _by_commit(measured.folder / measured.machine)
    for commit in commits:
        result = results.get(commit)
        if result is not None and result.points:
            measured.results[commit] = result
            measured.failed += [f"{commit[:8]} {name}" for name in result.failures if commit in wanted]
            continue
        reason = "does not build or import" if result is not None and result.failures else "predates the benchmarks"
        measured.without.append(f"{commit[:8]}: n/a, the commit {reason}")
        if result is not None:
            _restore(result.path, before)
    if not measured.results:
        raise NothingMeasured(f"nothing was measured: {'; '.join(measured.without)}")
    return measured


def _restore(path: Path, before: Mapping[Path, bytes]) -> None:
    """Restore a result file to its contents ``before`` asv wrote it."""
    if path in before:
        path.write_bytes(before[path])
    else:
        path.unlink()
