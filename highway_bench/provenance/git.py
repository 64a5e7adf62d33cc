"""git: the output of its commands, and the commit of the running source."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from highway_bench.errors import BadInput

PACKAGE = Path(__file__).resolve().parents[1]


def git(folder: Path, *arguments: str) -> str:
    """git's output in ``folder``; raises ``BadInput`` with git's message where it fails."""
    return git_bytes(folder, *arguments).decode().strip()


def git_bytes(folder: Path, *arguments: str) -> bytes:
    """As ``git``, for binary output."""
    # In a git hook, GIT_DIR would select another checkout.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, env=environment, check=False)
    except OSError as error:
        raise BadInput("git is not installed") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        raise BadInput(f"git {arguments[0]}: {lines[-1] if lines else 'failed'}")
    return done.stdout


def source_commit(folder: Path = PACKAGE) -> str | None:
    """The commit of the source in ``folder``; ``None`` outside git.

    ``+dirty`` is appended if tracked files there have changes, or if a Python file there is not tracked, such as a new
    block's. A package that is installed inside another project's checkout is not tracked there, and has no commit.
    """
    try:
        if not git(folder, "ls-files", "--", "."):
            return None
        head = git(folder, "rev-parse", "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
        new = git(folder, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    except BadInput:
        return None
    return head + ("+dirty" if changed or new else "")
