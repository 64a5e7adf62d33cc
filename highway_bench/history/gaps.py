"""Gaps: the commits that cannot be built or imported, with the reason; a file each next to the points, for git."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from highway_bench.errors import BadInput
from highway_bench.history.files import read_json, write_json

FOLDER = "gaps"  # in a machine's folder of points


class Gap(NamedTuple):
    """A commit without a point, and the reason."""

    commit: str
    reason: str


def store_gap(machine: Path, commit: str, reason: Exception) -> None:
    """Store why ``commit`` has no point in a machine's folder of points."""
    write_json(_path(machine, commit), Gap(commit, str(reason))._asdict())


def forget_gap(machine: Path, commit: str) -> None:
    """Remove the gap at a commit that has a point now."""
    _path(machine, commit).unlink(missing_ok=True)


def read_gaps(machine: Path) -> list[Gap]:
    """The gaps in a machine's folder of points; raises ``BadInput`` for a file that is none."""
    found = []
    for path in sorted((machine / FOLDER).glob("*.gap")):
        try:
            found.append(Gap(**read_json(path)))
        except TypeError as error:
            raise BadInput(f"{path} is no gap: {error}") from None
    return found


def _path(machine: Path, commit: str) -> Path:
    return machine / FOLDER / f"{commit[:8]}.gap"
