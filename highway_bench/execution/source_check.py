"""Source check: whether a job's modules are unchanged since its digests were computed.

A worker imports a module once, at an unknown moment. So it reads the files when it starts, before each job, and after
each measured cell. All of these must agree with the plan, or the cell fails. Only ``worker.py`` and its imports are
imported before the first check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.execution.module_source import ModuleSource, find_source
from highway_bench.execution.source_tree import Fingerprint

Signature = tuple[int, ...]


class SourceChanged(HighwayBenchError):
    """A module changed after the run was planned, so its results would get the digest of another source."""


class SourceCheck:
    """Compares modules with the plan: the source of ``modules`` when this object was created, and the present source.

    ``modules`` must include all that this process imports afterwards: of any other module only the present source is
    compared. A file is read again only if its time, size or inode has changed; a check of fifty modules takes 0.1 ms.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._read: dict[str, tuple[Signature, ModuleSource]] = {}
        self._before = {name: self._now(name) for name in modules}

    def changed(self, planned: Mapping[str, Fingerprint]) -> SourceChanged | None:
        """The error that names the first ``planned`` module that differs, now or when this object was created; else
        ``None``."""
        for name, fingerprint in planned.items():
            now = self._now(name)
            if not (_agrees(now, fingerprint) and _agrees(self._before.get(name, now), fingerprint)):
                return SourceChanged(f"source changed during the run: {name}")
        return None

    def _now(self, name: str) -> ModuleSource | None:
        """The module's present source; ``None`` where its file is gone."""
        signature, source = self._read.get(name, (None, None))
        try:
            source = source or find_source(name)
            if source is None:
                return None
            stat = source.path.stat()
            now = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            if now != signature:
                source = ModuleSource(name, source.path, source.is_package)
                source.content  # noqa: B018 - read now, after the signature was taken
                self._read[name] = now, source
        except OSError:
            return None
        return source


def _agrees(source: ModuleSource | None, planned: Fingerprint) -> bool:
    if source is None:
        return False
    try:
        return source.content == planned.content or source.meaning == planned.meaning
    except BadInput:  # no valid Python: half written
        return False
