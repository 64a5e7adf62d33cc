"""git: the output of its commands, and the commit of the running source."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path

from highway_bench.errors import BadInput

PACKAGE = Path(__file__).resolve().parents[1]


def git(folder: Path, *arguments: str) -> str:
    """git's output in ``folder``; raises ``BadInput`` with git's message where it fails."""
    return git_bytes(folder, *arguments).decode().strip()


def git_bytes(folder: Path, *arguments: str, given: bytes | None = None) -> bytes:
    """As ``git``, for binary output, and with input if it is ``given``."""
    # In a git hook, GIT_DIR would select another checkout. Messages are read in English.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {"LC_ALL": "C"}
    try:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, env=environment, check=False, input=given)
    except OSError as error:
        raise BadInput("git is not installed") from error
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        raise BadInput(f"git {arguments[0]}: {reason_in(lines)}")
    return done.stdout


def reason_in(lines: Sequence[str]) -> str:
    """Why git failed, by the ``lines`` that it wrote: its error, with the command by which it says to mend it."""
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    cures = [line.strip() for line in lines if line.startswith("\tgit ")]
    return "; ".join([*(errors or lines[-1:] or ["failed"])[:1], *cures])


def source_commit(folder: Path = PACKAGE) -> str | None:
    """The commit of the source in ``folder``; ``None`` outside git, and where git cannot read the checkout, with a
    warning that has the reason.

    ``+dirty`` is appended if tracked files there have changes, or if a Python file there is not tracked, such as a new
    block's. A package that is installed inside another project's checkout is not tracked there, and has no commit.
    """
    try:
        if not git(folder, "ls-files", "--", "."):
            return None
        head = git(folder, "rev-parse", "HEAD")
        changed = git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
        new = git(folder, "ls-files", "--others", "--exclude-standard", "--", "*.py")
    except BadInput as error:
        if any((above / ".git").exists() for above in (folder, *folder.parents)):
            warnings.warn(f"the commit of the source is unknown and not stored: {error}", stacklevel=2)
        return None
    return head + ("+dirty" if changed or new else "")
