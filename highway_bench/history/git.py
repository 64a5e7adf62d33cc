"""What the history reads from git: commits, their order and dates, uncommitted changes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from highway_bench.errors import BadInput
from highway_bench.history.paths import CONFIGURATION
from highway_bench.provenance.git import git, git_bytes

# The history's own outputs and text, which do not affect measurements.
FOLDERS, SUFFIX = ("reports", "docs"), ".md"
NOT_MEASURED = (*(f":(exclude){folder}" for folder in FOLDERS), f":(exclude)*{SUFFIX}")


def has_git(root: Path) -> bool:
    """Whether ``root`` is a checkout with a commit; a copy inside another project's checkout is not.

    Raises ``BadInput``, with the cure, for a checkout of another owner, which git refuses to read.
    """
    try:
        git(root, "rev-parse", "HEAD")
        git(root, "ls-files", "--error-unmatch", CONFIGURATION)
    except BadInput as error:
        if "dubious ownership" in str(error):
            raise
        return False
    return True


def commit_of(root: Path, name: str) -> str:
    """The full hash of a commit; raises ``BadInput`` if this repository does not have it."""
    try:
        return git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except BadInput:
        hint = "; this clone is shallow: git fetch --unshallow" if is_shallow(root) else ""
        raise BadInput(f"there is no commit {name!r} in this repository{hint}") from None


def date_of(root: Path, commit: str) -> int:
    """A commit's author date in milliseconds: what asv orders by."""
    return 1000 * int(git(root, "show", "-s", "--format=%at", commit))


def tree_of(root: Path, commit: str) -> str:
    """A hash of a commit's measured files."""
    names = git(root, "ls-tree", "-r", commit).splitlines()
    measured = [
        line for line in names if not line.endswith(SUFFIX) and line.partition("\t")[2].partition("/")[0] not in FOLDERS
    ]
    return hashlib.sha256("\n".join(measured).encode()).hexdigest()[:40]


def patches(root: Path, span: str) -> dict[str, str]:
    """The commits of a range on its first-parent line, by the ids of their patches."""
    text = git_bytes(root, "log", "--first-parent", "-m", "-p", "--no-ext-diff", "--no-color", span)
    ids = git_bytes(root, "patch-id", "--stable", given=text).decode().splitlines()
    return dict(line.split() for line in ids)


def web_page(root: Path) -> str | None:
    """The address of a commit's page, without the commit, where the remote ``origin`` has one."""
    try:
        address = git(root, "remote", "get-url", "origin")
    except BadInput:
        return None
    match = re.match(r"(?:https?://(?:[^@/]+@)?|ssh://git@|git@)([^/:]+)(?::\d+)?[:/](.+?)(?:\.git)?/?$", address)
    return f"https://{match[1]}/{match[2]}/commit/" if match else None


def subject(root: Path, commit: str) -> str:
    """The first line of a commit's message."""
    return git(root, "log", "-1", "--format=%s", commit)


def commits_in(root: Path, span: str) -> list[str]:
    """The commits of a range on its first-parent line, oldest first."""
    commits = git(root, "rev-list", "--first-parent", "--reverse", span, "--").split()
    if not commits:
        raise BadInput(f"there are no commits in {span!r}")
    return commits


def line_of(root: Path) -> dict[str, int]:
    """The commits on HEAD's first-parent line with their numbers, oldest first: those that asv's pages show."""
    return numbered(git(root, "rev-list", "--first-parent", "--reverse", "HEAD"))


def revisions(root: Path) -> dict[str, int]:
    """The number of every commit on the pages' axis, which asv counts so."""
    return numbered(git(root, "rev-list", "--all", "--date-order", "--reverse"))


def numbered(commits: str) -> dict[str, int]:
    """The lines of git's output with their numbers."""
    return {commit: number for number, commit in enumerate(commits.split())}


def is_dirty(root: Path, *paths: str) -> bool:
    """Whether measured files (by default all; else those in ``paths``) differ from HEAD, or are new and not ignored.

    git's setting for untracked files does not matter.
    """
    return bool(git(root, "status", "--porcelain", "--untracked-files=normal", "--", *(paths or (".",)), *NOT_MEASURED))


def is_shallow(root: Path) -> bool:
    """Whether older commits are missing from this clone."""
    return git(root, "rev-parse", "--is-shallow-repository") == "true"


def check_not_shallow(root: Path) -> None:
    """Raise ``BadInput`` in a shallow clone: the pages would lack the results of its missing commits."""
    if is_shallow(root):
        raise BadInput("this clone is shallow, and the history needs all commits: git fetch --unshallow")
