"""Files of measured lines: one line of JSON for each measurement, added as it ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_line(file: Path, line: Mapping[str, Any]) -> None:
    """Add a line to a file, which is created with its folder if needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a file; none where there is no file yet."""
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def collected(file: Path) -> list[dict[str, Any]]:
    """The lines of a file; without any, the command ends with one line that says so."""
    if lines := read_lines(file):
        return lines
    raise SystemExit(f"there are no lines in {file}: collect first")
