"""Points that get another place: measured elsewhere and imported, or of commits that were rewritten since.

After a rebase or a squash, points follow commits whose files are equal, accepted rises those whose patch is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import git
from highway_bench.history.files import (
    MACHINE,
    Result,
    copy_file,
    differences,
    machine_folders,
    read_machine,
    read_result,
    read_results,
    result_paths,
    write_json,
    write_text,
)
from highway_bench.history.machine import check_clash
from highway_bench.history.paths import CONFIGURATION, Paths, exclusive
from highway_bench.history.verdicts import rename_commits

NO_COMMIT = "0" * 40
HASH = re.compile(r"[0-9a-f]{7,64}\Z")  # or its beginning; a branch may be another commit in the other checkout
LONGEST = 200  # bytes of an environment name, which is a part of a file name of at most 255


@dataclass
class Imported:
    """The written files, and a line for each file that was not written."""

    written: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


@exclusive
def import_results(paths: Paths, folder: Path, commit: str | None = None) -> Imported:
    """Store the points in ``folder``: one machine's folder, or a folder of such folders.

    ``commit`` is the measured commit, for files that do not name it; each machine may then have one file only. All
    files are checked before any is stored. Raises ``BadInput`` for a point that is stored already with other values:
    nothing stored is overwritten.
    """
    git.check_not_shallow(paths.root)
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder")
    sources = [folder] if result_paths(folder) or (folder / MACHINE).is_file() else machine_folders(folder)
    if not any(map(result_paths, sources)):
        raise NothingMeasured(f"{folder} has no result files")
    full = git.commit_of(paths.root, commit) if commit else None
    ready: dict[Path, tuple[Path, dict[str, Any]]] = {}  # target → its source's folder, and the data to write
    imported = Imported()
    on_line = set(git.line_of(paths.root))
    for source in sources:
        files = result_paths(source)
        # The folder may have been renamed while it was copied; the entry's name counts.
        machine = read_machine(source, renamed=source == folder)
        check_clash(machine, paths.results)
        if full and len(files) > 1:
            raise BadInput(f"{source} has {len(files)} result files: --commit can name the commit of one only")
        for path in files:
            data = checked_result(paths.root, path, machine, full)
            known = data["commit_hash"]
            name = f"{known[:8]} of machine {machine['machine']!r}"
            target = paths.results / str(machine["machine"]) / f"{known[:8]}-{data['env_name']}.json"
            if target in ready:
                raise BadInput(f"{source} has two files for {name}")
            if not target.exists():
                ready[target] = source, data
            elif read_result(target).data == data:
                imported.lines.append(f"{name} is stored already, with these values")
            else:
                raise BadInput(
                    f"{name} is stored already, with other values; remove "
                    f"{target.relative_to(paths.root)} first if these are to count"
                )
            if known not in on_line:
                imported.lines.append(f"{name} is not on HEAD's first-parent line: the pages leave it out")
    for target, (source, data) in ready.items():
        if not (target.parent / MACHINE).exists():
            copy_file(source / MACHINE, target.parent / MACHINE)
        write_json(target, data)
        imported.written.append(target)
    return imported


def checked_result(root: Path, path: Path, machine: Mapping[str, Any], full: str | None) -> dict[str, Any]:
    """A result file's data under its own commit, or else under the commit ``full``.

    Raises ``NothingMeasured`` for a file without values, ``BadInput`` for another machine's file, for one without a
    commit, and for one of another commit than ``full``.
    """
    result = read_result(path)
    if other := differences(result.data["params"], machine):
        raise BadInput(f"{path} is of another machine than its {MACHINE} says: {other}")
    if not result.points:
        raise NothingMeasured(f"{path} has no value at all")
    environment = str(result.data["env_name"])
    if Path(environment).name != result.data["env_name"] or len(environment.encode(errors="replace")) > LONGEST:
        raise BadInput(f"{path} has the environment name {environment[:60]!r}, which is no file name")
    if not HASH.match(result.commit):
        raise BadInput(f"{path} has the commit {result.commit!r}, which is no hash")
    if result.commit == NO_COMMIT and not full:
        raise BadInput(f"{path} does not name its commit: give it with --commit")
    known = full if full and result.commit == NO_COMMIT else git.commit_of(root, result.commit)
    if full and known != full:
        raise BadInput(f"{path} is of commit {known[:8]}, not of {full[:8]}: omit --commit")
    return result.data | {"commit_hash": known, "date": git.date_of(root, known)}


@exclusive
def follow_points(paths: Paths) -> list[str]:
    """Give each point that is not on HEAD's first-parent line to the oldest commit there with its files, with the
    verdicts on it; a line for the points that moved, and one for those that did not.

    Equal patches are not enough: on another base, a point would bring values of code that is gone.
    """
    line = git.line_of(paths.root)
    lost = [result for result in read_results(paths.results) if result.commit not in set(line)]
    if not lost:
        return []
    by_tree = {git.tree_of(paths.root, commit): commit for commit in reversed(line)}
    renamed: dict[str, dict[str, str]] = {}
    left = []
    for result in lost:
        commit = by_tree.get(_tree(paths, result))
        target = result.path.with_name(f"{commit[:8]}-{result.data['env_name']}.json") if commit else None
        if commit is None or target is None or target.exists():
            left.append(result.commit[:8])
            continue
        tree = git.tree_of(paths.root, commit)
        date = git.date_of(paths.root, commit)
        write_json(target, result.data | {"commit_hash": commit, "date": date, "tree": tree})
        result.path.unlink()
        renamed.setdefault(result.path.parent.name, {})[result.commit] = commit
    for machine, commits in renamed.items():
        rename_commits(paths.results / machine, commits)
    moved = [f"{old[:8]} to {new[:8]}" for commits in renamed.values() for old, new in commits.items()]
    lines = [f"points followed rewritten commits with the same files: {', '.join(moved)}"] if moved else []
    return lines + ([f"points of no commit on HEAD's first-parent line: {', '.join(left)}"] if left else [])


def _tree(paths: Paths, result: Result) -> str:
    """The hash of a point's files; empty where neither the point nor this clone has it."""
    if "tree" in result.data:
        return str(result.data["tree"])
    with suppress(BadInput):
        return git.tree_of(paths.root, result.commit)
    return ""


@exclusive
def follow_accepted(paths: Paths) -> list[str]:
    """Write into asv's configuration the rewritten commits of accepted rises; a line for each, and for each that has
    none."""
    line, lines = git.line_of(paths.root), []
    path = paths.root / CONFIGURATION
    for name in filter(None, set(paths.configuration()["regressions_first_commits"].values())):
        found = None
        with suppress(BadInput):  # this clone may not have the commit
            commit = git.commit_of(paths.root, name)
            if commit in line:
                continue
            patches = git.patches(paths.root, f"{commit}..HEAD")
            found = patches.get(*git.patches(paths.root, f"{commit}^..{commit}"))
        if found is None:
            lines.append(f"{CONFIGURATION}: the accepted rise at {name[:8]} is at no commit of HEAD's line")
            continue
        write_text(path, path.read_text(encoding="utf-8").replace(name, found))
        lines.append(f"{CONFIGURATION}: the accepted rise at {name[:8]} is at {found[:8]} now: commit it")
    return lines
