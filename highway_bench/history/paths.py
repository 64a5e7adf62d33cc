"""Where the history lies: asv's configuration, the committed results, and the ignored folder that asv works in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput

CONFIGURATION = "asv.conf.json"


@dataclass(frozen=True)
class Paths:
    """The folders of a checkout's history.

    ``recorded`` is committed. ``results`` is what asv writes, ``uncommitted`` the points of a tree with uncommitted
    changes, ``shown`` what was last published, ``merged`` the names of results that are recorded, and ``withdrawn``
    the twins of those that were: all of them ignored by git, so that measuring dirties nothing.
    """

    root: Path

    @classmethod
    def of(cls, root: Path | str = ".") -> Paths:
        """The paths of the checkout at ``root``; raises ``BadInput`` where there is no configuration of asv."""
        place = Path(root).resolve()
        if not (place / CONFIGURATION).is_file():
            raise BadInput(f"{place.name}: no {CONFIGURATION} here; run this in highway_bench's own checkout")
        return cls(place)

    @property
    def recorded(self) -> Path:
        return self.root / "reports/asv/results"

    @property
    def noise(self) -> Path:
        return self.root / "reports/asv/noise"

    @property
    def working(self) -> Path:
        return self.root / "reports/asv/.working"

    @property
    def results(self) -> Path:
        return self.working / "results"

    @property
    def uncommitted(self) -> Path:
        return self.working / "uncommitted"

    @property
    def shown(self) -> Path:
        return self.working / "shown"

    @property
    def merged(self) -> Path:
        return self.working / "merged.txt"

    @property
    def withdrawn(self) -> Path:
        return self.working / "withdrawn"

    @property
    def html(self) -> Path:
        return self.root / "reports/asv/html"

    def configuration(self) -> dict[str, Any]:
        """asv's configuration, as the file says it; raises ``BadInput`` where it cannot be read."""
        path = self.root / CONFIGURATION
        try:
            import json5  # of the group "history": the report and its server need none
        except ModuleNotFoundError:
            raise BadInput("json5 is not installed: pip install --group history") from None
        try:
            found: dict[str, Any] = json5.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path.name} cannot be read: {error}") from error
        return found

    def configured(self, name: str, **changes: Any) -> Path:
        """Write asv's configuration with absolute folders, and with ``changes``, as ``name`` among the working files.

        asv takes every relative path from the configuration file's folder.
        """
        made = self.configuration()
        for key in ("benchmark_dir", "env_dir", "results_dir", "html_dir", "repo"):
            made[key] = str((self.root / made[key]).resolve())
        made |= {key: str(value) if isinstance(value, Path) else value for key, value in changes.items()}
        self.working.mkdir(parents=True, exist_ok=True)
        path = self.working / f"asv-{name}.conf.json"
        path.write_text(json.dumps(made, indent=1), encoding="utf-8")
        return path
