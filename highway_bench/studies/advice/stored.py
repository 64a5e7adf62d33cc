"""Stored decisions: what an advice decides from measured times is decided once, and read again by later runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput


class Decisions:
    """The decisions in the JSON file ``path``, by name.

    Times differ from run to run, so that deciding again would give other cells, and another answer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        except (OSError, ValueError) as error:
            raise BadInput(f"{path} cannot be read ({error}): remove its folder to begin again") from error

    def once(self, name: str, decide: Callable[[], Any]) -> Any:
        """The decision ``name``; the value of ``decide``, which JSON must know, where it was not decided before."""
        if name not in self._values:
            self._values[name] = decide()
            self._write()
        return self._values[name]

    def forget(self, *names: str) -> None:
        """Remove decisions; ``once`` then makes them again."""
        for name in names:
            self._values.pop(name, None)
        self._write()

    def _write(self) -> None:
        partly = self.path.with_suffix(".part")
        partly.write_text(json.dumps(self._values, indent=1, allow_nan=False), encoding="utf-8")
        os.replace(partly, self.path)
