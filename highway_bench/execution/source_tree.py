"""Source tree: the source code that modules run through, and one hash of all of it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec
from itertools import accumulate
from typing import NamedTuple

from highway_bench.errors import BadInput
from highway_bench.execution.module_source import ModuleSource, find_source
from highway_bench.execution.source_code import PACKAGE, hash_of

# Modules of the package that decide which cells run and where results go, but not what is measured. The package's own
# entry "highway_bench" is the façade module alone, which only forwards names.
NOT_MEASURED = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "asv_api",
        "asv_suite",
        "block_check",
        "catalogue",
        "cell",
        "cli",
        "errors",
        "execution",
        "history",
        "network_summary",
        "options",
        "plan",
        "plugins",
        "provenance",
        "registry",
        "report",
        "reproduce",
        "results",
        "scaffold",
        "tasks.network_bytes",
        "terminal",
    )
)


class Fingerprint(NamedTuple):
    """Hashes of a module's file: of its bytes (fast), and of its meaning (``ModuleSource.meaning``)."""

    content: str
    meaning: str


class SourceTree:
    """The source code that modules run through. Every file is read once; create a new instance for each run."""

    def __init__(self) -> None:
        importlib.invalidate_caches()  # finds files that were just written
        self._sources: dict[str, ModuleSource | None] = {}
        self._specs: dict[str, ModuleSpec | None] = {}
        self._edges: dict[str, list[str]] = {}
        self._fingerprints: dict[frozenset[str], dict[str, Fingerprint]] = {}
        self._digests: dict[tuple[frozenset[str], bool], str] = {}

    def digest(self, modules: Iterable[str], *, compiled: bool = False) -> str:
        """One hash over the meaning of ``modules`` and of all that they import, directly or indirectly; for a cell that
        is ``compiled``, with what only ``torch.compile`` runs.

        Raises ``BadInput`` for one of ``modules`` without a source file.
        """
        starts = frozenset(modules)
        if (starts, compiled) not in self._digests:
            sources = [(name, source) for name in self.fingerprints(starts) if (source := self._source(name))]
            meanings = [(name, source.meaning if compiled else source.eager) for name, source in sources]
            self._digests[starts, compiled] = hash_of(json.dumps(meanings))
        return self._digests[starts, compiled]

    def fingerprints(self, modules: Iterable[str]) -> dict[str, Fingerprint]:
        """The fingerprint of each module that ``digest`` covers, by name. Equal ``modules`` give the same object."""
        starts = frozenset(modules)
        if starts not in self._fingerprints:
            named = ((name, self._source(name)) for name in sorted(self.closure(starts)))
            self._fingerprints[starts] = {
                name: Fingerprint(source.content, source.meaning) for name, source in named if source
            }
        return self._fingerprints[starts]

    def closure(self, modules: Iterable[str]) -> set[str]:
        """Names of ``modules`` and of every module of this package or of a plug-in that they import.

        Imports of a plug-in's modules are followed within its own top-level package, and to modules next to it in a
        folder of the user's; libraries are not followed.
        """
        closure: set[str] = set()
        waiting = list(modules)
        for name in waiting:
            if self._source(name) is None:
                raise BadInput(
                    f"module {name!r} has no source file, so its results could not be distinguished from old ones"
                )
        while waiting:
            name = waiting.pop()
            if name not in closure and self._source(name) is not None:
                closure.add(name)
                waiting += self._followed_from(name)
        return closure

    def _followed_from(self, name: str) -> list[str]:
        """The modules that ``name`` imports and that are followed; computed once."""
        if name not in self._edges:
            source = self._source(name)
            imported = [] if source is None else dict.fromkeys(self._imports(source))
            self._edges[name] = [one for one in imported if source is not None and self._followed(one, source)]
        return self._edges[name]

    def _imports(self, source: ModuleSource) -> Iterator[str]:
        """Modules that ``source`` imports: ``from a import b`` is ``a.b`` where that is a module, else ``a``."""
        for module, names in source.imports:
            inner = [f"{module}.{name}" for name in names]
            submodules = [name for name in inner if self._source(name) is not None]
            yield from submodules
            if len(submodules) < len(inner) or not inner:
                yield module

    def _followed(self, name: str, source: ModuleSource) -> bool:
        top, _, rest = name.partition(".")
        if top == PACKAGE:
            return bool(rest) and NOT_MEASURED.isdisjoint(accumulate(name.split("."), "{}.{}".format))
        if top == source.name.partition(".")[0]:
            return True
        if source.is_library:
            return False
        other = self._source(top)
        return other is not None and other.home == source.home

    def _source(self, name: str) -> ModuleSource | None:
        if name not in self._sources:
            self._sources[name] = find_source(name, self._specs)
        return self._sources[name]
