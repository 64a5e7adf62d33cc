"""The history's folders: asv's configuration, the committed results, and asv's ignored working folder."""

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

    ``recorded`` and ``noise`` are committed. git ignores the others: ``results`` is what asv writes, ``uncommitted``
    the points of a tree with uncommitted changes, ``shown`` what was last published, ``merged`` the names of recorded
    results, and ``withdrawn`` the copies of results that are no longer recorded.
    """

    root: Path

    @classmethod
    def of(cls, root: Path | str = ".") -> Paths:
        """The paths of the checkout at ``root``; raises ``BadInput`` where there is no configuration of asv."""
        folder = Path(root).resolve()
        if not (folder / CONFIGURATION).is_file():
            raise BadInput(f"{folder.name}: no {CONFIGURATION} here; run this in highway_bench's own checkout")
        return cls(folder)

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
        """asv's configuration from its file; raises ``BadInput`` where it cannot be read."""
        path = self.root / CONFIGURATION
        try:
            import json5  # of the group "history", which the report and its server do not need
        except ModuleNotFoundError:
            raise BadInput("json5 is not installed: pip install --group history") from None
        try:
            configuration: dict[str, Any] = json5.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise BadInput(f"{path.name} cannot be read: {error}") from error
        return configuration

    def configured(self, name: str, **changes: Any) -> Path:
        """Write asv's configuration with absolute folders, and with ``changes``, as ``name`` into the working folder.

        asv reads relative paths as relative to the configuration file.
        """
        configuration = self.configuration()
        for key in ("benchmark_dir", "env_dir", "results_dir", "html_dir", "repo"):
            configuration[key] = str((self.root / configuration[key]).resolve())
        configuration |= {key: str(value) if isinstance(value, Path) else value for key, value in changes.items()}
        self.working.mkdir(parents=True, exist_ok=True)
        path = self.working / f"asv-{name}.conf.json"
        path.write_text(json.dumps(configuration, indent=1), encoding="utf-8")
        return path
