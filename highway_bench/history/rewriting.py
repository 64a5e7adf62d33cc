"""After a rebase or a squash: points follow commits whose files are equal, accepted rises those whose patch is."""

from __future__ import annotations

from contextlib import suppress

from highway_bench.errors import BadInput
from highway_bench.history import git
from highway_bench.history.files import Result, read_results, write_json, write_text
from highway_bench.history.paths import CONFIGURATION, Paths
from highway_bench.history.verdicts import rename_commits
from highway_bench.history.working_folder import exclusive


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
