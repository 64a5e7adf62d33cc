"""Registry: entries by name, for blocks, families, tasks and data sets. Does not import torch.

Names are public API: lower case, words joined by ``-``. A duplicate name is an error that names both modules. An
unknown name is an error that lists similar names. ``select`` accepts shell wildcards.
"""

from __future__ import annotations

import ast
import fnmatch
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from .errors import USER_ERRORS, BadInput, DuplicateName, UnknownName

T = TypeVar("T")

FIRST_VERSION = "1"  # of an entry that declares none
_registries: dict[str, Registry[Any]] = {}  # by kind
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")


class Registry(Generic[T]):
    """Entries of one kind by name, in natural order, including those of other packages' entry points.

    ``kind`` is the noun in messages. ``package`` is the package whose public modules are imported at the first look-up,
    so a new file needs no further registration. ``group`` is the entry-point group for other packages. An entry point
    is a module, or an object in one; loading it runs the registration. One that names a class and registers nothing is
    an alias of ``module:class``, where the kind has such names.
    """

    def __init__(self, kind: str, *, package: str | None = None, group: str | None = None) -> None:
        self.kind = kind
        self.package = package
        self.group = group
        self._entries: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._loaded = False
        self._broken: BadInput | None = None
        _registries[kind] = self

    def __repr__(self) -> str:
        return f"{len(self)} {self.kind} names: {', '.join(self)}"

    def register(self, name: str, entry: T, *, module: str) -> None:
        """Add ``entry``, which is defined in ``module``; a module that is loaded again replaces its own.

        Raises ``BadInput`` for a malformed name, or one of another module.
        """
        if not NAME.match(name):
            raise BadInput(f"{self.kind} name {name!r} in {module}: use lower-case words joined by '-'")
        if self._modules.get(name, module) != module:
            raise DuplicateName(self.kind, name, self._modules[name], module)
        self._entries[name] = entry
        self._modules[name] = module

    def unregister(self, name: str) -> None:
        """Remove ``name``, for tests and notebooks that define an entry more than once."""
        self._entries.pop(name, None)
        self._modules.pop(name, None)

    def get(self, name: str) -> T:
        """The entry called ``name``; raises ``UnknownName`` with similar names."""
        self._load()
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownName(self.kind, name, self.names()) from None

    def alias_of(self, name: str) -> str:
        """``module:class`` if an entry point of this ``name`` is an alias, else ``name``."""
        self._load()
        return self._aliases.get(name, name)

    def module_of(self, name: str) -> str:
        """The name of the module that defines the entry ``name``."""
        self.get(name)
        return self._modules[name]

    def version_of(self, name: str) -> str:
        """The version of the entry ``name``. It is raised when the entry's numbers change, and is part of every key."""
        return str(getattr(self.get(name), "version", FIRST_VERSION))

    def names(self) -> list[str]:
        """All names in natural order (``layer-2`` before ``layer-10``)."""
        self._load()
        return sorted(self._entries, key=natural)

    def select(self, *patterns: str) -> list[str]:
        """Names that match any of ``patterns`` (shell wildcards), each once, in the order of the patterns.

        Raises ``UnknownName`` for a pattern that matches nothing, such as a misspelt name.
        """
        chosen: dict[str, None] = {}
        for pattern in patterns:
            matches = fnmatch.filter(self.names(), pattern)
            if not matches:
                raise UnknownName(self.kind, pattern, self.names())
            chosen.update(dict.fromkeys(matches))
        return list(chosen)

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        self._load()
        return len(self._entries)

    def _load(self) -> None:
        if self._broken is not None:  # an incomplete list would mislead, and another import would find its names taken
            raise self._broken
        if self._loaded:
            return
        self._loaded = True  # before the imports, which may look up names
        try:
            self._import()
        except BadInput as error:
            self._broken = error
            raise

    def _import(self) -> None:
        if self.package is not None:
            package = importlib.import_module(self.package)
            for module in pkgutil.iter_modules(package.__path__):
                if not module.name.startswith("_"):
                    with _importing(f"{Path(package.__path__[0], module.name)}.py"):
                        importlib.import_module(f"{self.package}.{module.name}")
        if self.group is not None:
            for point in entry_points(group=self.group):
                with _importing(f"plug-in {point.value!r} ({self.kind} {point.name!r})"):
                    loaded = point.load()
                    if isinstance(loaded, type) and point.name not in self._entries:
                        self._aliases[point.name] = f"{loaded.__module__}:{loaded.__qualname__}"


def parsed(path: Path) -> ast.Module:
    """The source at ``path``; raises ``BadInput`` where it is no Python."""
    with _importing(str(path)):
        return ast.parse(path.read_text(encoding="utf-8"), path)


def load_plugin(module: str) -> None:
    """Import ``module`` so that it registers its entries; raises ``BadInput`` with the reason where it cannot."""
    from .by_value import MAIN, PICKLED, unpacked  # asv's benchmarks read the registry without the package

    if module.startswith(PICKLED):
        with _importing("what a notebook or a script defines"):
            for (kind, name), entry in unpacked(module).items():
                _registries[kind].register(name, entry, module=MAIN)
        return
    with _importing(f"plug-in {module!r}"):
        importlib.import_module(module)


def modules_of(entries: Iterable[tuple[Registry[Any], str]]) -> tuple[str, ...]:
    """The plug-ins with which a worker process has ``entries``, given by registry and name: modules, and one that has
    what no module defines. What is called ``module:name`` is imported by that."""
    from .by_value import is_module, named_value, packed

    modules: dict[str, None] = {}
    references: dict[str, None] = {}
    others: dict[str, dict[str, Any]] = {}
    for registry, name in entries:
        if ":" in name:
            references |= {name: None} if named_value(name) else {}
        elif is_module(module := registry.module_of(name)):
            modules[module] = None
        else:
            others.setdefault(registry.kind, {})[name] = registry.get(name)
    return (*modules, *([packed(references, others)] if references or others else []))


def imported(reference: str, what: str) -> Any:
    """The object that ``module:name`` names; ``what`` it is appears in messages.

    Raises ``BadInput`` where it is missing or cannot be imported.
    """
    from .by_value import named_value

    if (value := named_value(reference)) is not None:
        return value.thing
    module, _, name = reference.partition(":")
    with _importing(f"{what} {reference!r}"):
        loaded = importlib.import_module(module)
    try:
        return attrgetter(name)(loaded)
    except AttributeError:
        raise BadInput(f"module {module!r} has no {name!r}, which the {what} {reference!r} names") from None


def imported_function(reference: str, what: str) -> Callable[..., Any]:
    """As ``imported``; raises ``BadInput`` for what cannot be called, too."""
    function = imported(reference, what)
    if not callable(function):
        raise BadInput(f"the {what} {reference!r} is no function")
    return function  # type: ignore[no-any-return]


def reference_of(given: str) -> str:
    """``module:name`` of ``given``, which may also be ``FILE.py:name``: the file's folder becomes importable.

    Raises ``BadInput`` as ``module_of_file`` does.
    """
    module, separator, name = given.rpartition(":")
    return f"{module_of_file(module)}:{name}" if separator and module.endswith(".py") else given


def module_of_file(given: str) -> str:
    """The module in the file ``given``, whose folder becomes importable.

    A file of a package (a folder with ``__init__.py``) is the package's module, so that its relative imports work.
    Raises ``BadInput`` for a file that is missing, or whose module another one hides.
    """
    path = Path(given).expanduser().absolute()
    if not os.path.isfile(path):  # false for a name that is too long, where Path.is_file raises
        raise BadInput(f"{given!r}: there is no such file")
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names, folder = [folder.name, *names], folder.parent
    module = ".".join(names)
    if not all(name.isidentifier() for name in names):
        raise BadInput(f"{given!r}: {module!r} is not a module name; use letters, digits and '_'")
    make_importable(folder)
    with _importing(repr(given)):
        spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not path.samefile(spec.origin):
        raise BadInput(f"{given!r}: another module is called {module!r} already; rename the file")
    return module


def make_importable(folder: Path) -> None:
    """Add ``folder`` to ``sys.path`` of this process, which worker processes inherit."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()  # finds files that were just written


@contextmanager
def _importing(what: str) -> Iterator[None]:
    """Turn the errors of an import, which may run a user's unfinished file, into ``BadInput`` that names ``what``.

    A script that calls ``sys.exit`` is one of these errors. What it prints goes to stderr.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except BadInput:
        raise
    except USER_ERRORS as error:
        raise BadInput(f"{what} failed to import: {type(error).__name__}: {error}") from error


@cache
def natural(name: str) -> list[tuple[int, int | str]]:
    """The key of natural order."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part]


def described(entry: Callable[..., Any]) -> str:
    """The first line of an entry's docstring, for lists."""
    return (entry.__doc__ or "").strip().partition("\n")[0]
