"""Module sources: the file of a module, found by name without importing anything."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from functools import cached_property
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path

from highway_bench.execution.source_code import Code, Import, code_of

LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))


class ModuleSource:
    """One module's file, read once."""

    def __init__(self, name: str, path: Path, is_package: bool) -> None:
        self.name = name
        self.path = path
        self.is_package = is_package

    @cached_property
    def home(self) -> Path | None:
        """The folder that contains this module's top-level package or module."""
        levels = self.name.count(".") + (1 if self.is_package else 0)
        parents = self.path.resolve().parents
        return parents[levels] if levels < len(parents) else None

    @cached_property
    def is_library(self) -> bool:
        """Whether it belongs to Python or to an installed package."""
        return self.home is None or in_library(self.home)

    @cached_property
    def content(self) -> str:
        """A hash of the bytes."""
        return hashlib.sha256(self._bytes).hexdigest()[:32]

    @property
    def meaning(self) -> str:
        """A hash of the code without comments, docstrings and layout; of the bytes where it is not Python."""
        return self._code.meaning if self.path.suffix == ".py" else self.content

    @property
    def eager(self) -> str:
        """As ``meaning``; of this package's modules without what only ``torch.compile`` runs.

        A plug-in may compile a part of itself in an eager cell.
        """
        return self._code.eager if self.path.suffix == ".py" else self.content

    @property
    def imports(self) -> tuple[Import, ...]:
        """Every import statement that can run, with the absolute name of its module."""
        return self._code.imports if self.path.suffix == ".py" else ()

    @cached_property
    def _bytes(self) -> bytes:
        return self.path.read_bytes()

    @cached_property
    def _code(self) -> Code:
        return code_of(self._bytes, self.name, self.is_package)


def in_library(path: Path) -> bool:
    """Whether ``path`` lies in a folder of Python or of installed packages."""
    resolved = path.resolve()
    return any(resolved.is_relative_to(library) for library in LIBRARIES)


def find_source(name: str, specs: dict[str, ModuleSpec | None] | None = None) -> ModuleSource | None:
    """The file of module ``name``, found without importing it; ``None`` where there is none.

    ``specs`` has those that were found before, also of packages, and receives new ones.
    """
    spec = _spec(name, {} if specs is None else specs)
    origin = Path(spec.origin) if spec and spec.has_location and spec.origin else None
    is_package = bool(spec and spec.submodule_search_locations is not None)
    return ModuleSource(name, origin, is_package) if origin and origin.is_file() else None


def _spec(name: str, specs: dict[str, ModuleSpec | None]) -> ModuleSpec | None:
    """The spec of module ``name``. Its packages are not imported, as ``importlib.util.find_spec`` would do."""
    if name not in specs:
        specs[name] = _new_spec(name, specs)
    return specs[name]


def _new_spec(name: str, specs: dict[str, ModuleSpec | None]) -> ModuleSpec | None:
    if name == "__main__":
        return _spec_of_main()
    package = name.rpartition(".")[0]
    try:
        if not package:
            return find_spec(name)
    except (ImportError, ValueError):  # a module created at run time, without a spec
        return None
    above = _spec(package, specs)
    folders = None if above is None else above.submodule_search_locations
    return None if folders is None else PathFinder.find_spec(name, list(folders))


def _spec_of_main() -> ModuleSpec | None:
    path = getattr(sys.modules["__main__"], "__file__", None)
    if path is None:
        return None
    spec = ModuleSpec("__main__", None, origin=str(Path(path).resolve()))
    spec.has_location = True
    return spec
