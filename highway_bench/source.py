"""Source: the files that modules run through, found without importing them, and one hash of what they mean.

Comments, docstrings and layout do not count. Of libraries nothing is read.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from highway_bench.errors import BadInput, HighwayBenchError

PACKAGE = "highway_bench"
LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))
PACKAGES = {"site-packages", "dist-packages"}  # those of the user and of the system too

Signature = tuple[int, ...]


class Fingerprint(NamedTuple):
    """Hashes of a module's file: of its bytes (fast), and of its code without comments, docstrings and layout."""

    content: str
    meaning: str


class Import(NamedTuple):
    """An import statement: ``import module``, or ``from module import names``."""

    module: str
    names: tuple[str, ...] = ()


class Module:
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
    def content(self) -> str:
        return hash_of(self._bytes)

    @property
    def meaning(self) -> str:
        """A hash of the code without comments, docstrings and layout; of the bytes where it is not Python."""
        return _code_of(self._bytes, self.name, self.is_package)[0] if self._is_python else self.content

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(self.content, self.meaning)

    @property
    def imports(self) -> tuple[Import, ...]:
        """Every import statement that can run, with the absolute name of its module."""
        return _code_of(self._bytes, self.name, self.is_package)[1] if self._is_python else ()

    @property
    def _is_python(self) -> bool:
        return self.path.suffix == ".py"

    @cached_property
    def _bytes(self) -> bytes:
        return self.path.read_bytes()


class SourceTree:
    """The files that modules run through. Each is read once; create a new instance for each run."""

    def __init__(self) -> None:
        importlib.invalidate_caches()  # finds files that were just written
        self._modules: dict[str, Module | None] = {}
        self._specs: dict[str, ModuleSpec | None] = {}
        self._edges: dict[str, list[str]] = {}
        self._fingerprints: dict[frozenset[str], dict[str, Fingerprint]] = {}
        self._digests: dict[tuple[frozenset[str], bool], str] = {}

    def digest(self, modules: Iterable[str], *, own: bool = False) -> str:
        """One hash over the code of ``modules`` and of all that they import, directly or indirectly; with ``own``, of
        the user's part alone, without this package.

        Raises ``BadInput`` for one of ``modules`` without a source file.
        """
        starts = frozenset(modules)
        if (starts, own) not in self._digests:
            found = self.fingerprints(starts).items()
            meanings = [f"{name} {one.meaning}" for name, one in found if not (own and is_ours(name))]
            self._digests[starts, own] = hash_of("\n".join(meanings).encode())
        return self._digests[starts, own]

    def fingerprints(self, modules: Iterable[str]) -> dict[str, Fingerprint]:
        """The fingerprint of each module that ``digest`` covers, by name. Equal ``modules`` give the same object."""
        starts = frozenset(modules)
        if starts not in self._fingerprints:
            found = ((name, self._module(name)) for name in sorted(self.closure(starts)))
            self._fingerprints[starts] = {name: module.fingerprint for name, module in found if module}
        return self._fingerprints[starts]

    def closure(self, modules: Iterable[str]) -> set[str]:
        """Names of ``modules`` and of every module of this package or of the user's that they import.

        Imports of the user's modules are followed within their own top-level package, and to modules next to it in a
        folder; libraries are not followed.
        """
        closure: set[str] = set()
        waiting = list(modules)
        for name in waiting:
            if self._module(name) is None:
                raise BadInput(
                    f"module {name!r} has no source file, so its results could not be distinguished from old ones"
                )
        while waiting:
            name = waiting.pop()
            if name not in closure and self._module(name) is not None:
                closure.add(name)
                waiting += self._followed_from(name)
        return closure

    def _followed_from(self, name: str) -> list[str]:
        """The modules that ``name`` imports and that are followed; computed once."""
        if name not in self._edges:
            module = self._module(name)
            imported = [] if module is None else dict.fromkeys(self._imports(module))
            self._edges[name] = [one for one in imported if module is not None and self._followed(one, module)]
        return self._edges[name]

    def _imports(self, module: Module) -> Iterator[str]:
        """Modules that ``module`` imports: ``from a import b`` is ``a.b`` where that is a module, else ``a``."""
        for name, names in module.imports:
            inner = [f"{name}.{one}" for one in names]
            submodules = [one for one in inner if self._module(one) is not None]
            yield from submodules
            if len(submodules) < len(inner) or not inner:
                yield name

    def _followed(self, name: str, importer: Module) -> bool:
        top, _, rest = name.partition(".")
        if top == PACKAGE:
            return bool(rest)  # the package's own module only forwards names
        if top == importer.name.partition(".")[0]:
            return True
        if importer.home is None or in_library(importer.home):
            return False
        other = self._module(top)
        return other is not None and other.home == importer.home

    def _module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = find_module(name, self._specs)
        return self._modules[name]


class SourceChanged(HighwayBenchError):
    """A module changed after the run was planned, so its results would get the key of another source."""


class SourceCheck:
    """Compares modules with the plan: their source when this object was created, and their present source.

    A worker imports a module once, at an unknown moment. So it creates this object before it imports the jobs'
    ``modules``, and asks ``changed`` before each job and after each cell. A file is read again only if its time, size
    or inode has changed; a check of fifty modules takes 0.1 ms.
    """

    def __init__(self, modules: Iterable[str] = ()) -> None:
        self._read: dict[str, tuple[Signature, Module]] = {}
        self._before = {name: self._now(name) for name in modules}

    def changed(self, planned: Mapping[str, Fingerprint]) -> SourceChanged | None:
        """The error that names the first ``planned`` module that differs, now or when this object was created; else
        ``None``."""
        for name, fingerprint in planned.items():
            now = self._now(name)
            if not (_agrees(now, fingerprint) and _agrees(self._before.get(name, now), fingerprint)):
                return SourceChanged(f"source changed during the run: {name}")
        return None

    def _now(self, name: str) -> Module | None:
        """The module's present source; ``None`` where its file is gone."""
        signature, module = self._read.get(name, (None, None))
        try:
            module = module or find_module(name)
            if module is None:
                return None
            stat = module.path.stat()
            now = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
            if now != signature:
                module = Module(name, module.path, module.is_package)
                module.content  # noqa: B018 - read now, after the signature was taken
                self._read[name] = now, module
        except OSError:
            return None
        return module


def _agrees(module: Module | None, planned: Fingerprint) -> bool:
    if module is None:
        return False
    try:
        return module.content == planned.content or module.meaning == planned.meaning
    except BadInput:  # no valid Python: half written
        return False


def is_ours(module: str) -> bool:
    """Whether a module is one of this package."""
    return module.partition(".")[0] == PACKAGE


def in_library(path: Path) -> bool:
    """Whether ``path`` lies in a folder of Python or of installed packages."""
    resolved = path.resolve()
    return not PACKAGES.isdisjoint(resolved.parts) or any(resolved.is_relative_to(one) for one in LIBRARIES)


def is_own(module: str) -> bool:
    """Whether a module is a file of the user's: neither of this package nor of a library."""
    found = None if is_ours(module) else find_module(module)
    return found is not None and not in_library(found.path)


def hash_of(data: bytes) -> str:
    """32 hexadecimal digits that stand for ``data``."""
    return hashlib.sha256(data).hexdigest()[:32]


@lru_cache(maxsize=4096)
def _code_of(source: bytes, name: str, is_package: bool) -> tuple[str, tuple[Import, ...]]:
    """A hash of what the module ``name`` does, and its imports; parsed once in a process."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise BadInput(f"module {name!r} is no valid Python: {error.msg}, line {error.lineno}") from error
    package = name.split(".") if is_package else name.split(".")[:-1]
    imports = tuple(_imports_in(tree, package))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return hash_of(ast.unparse(tree).encode("utf-8", "surrogatepass")), imports


def _imports_in(node: ast.AST, package: list[str]) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        yield from (Import(alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package[: len(package) + 1 - node.level] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        yield Import(module, tuple(alias.name for alias in node.names))
    elif isinstance(node, ast.If) and getattr(node.test, "id", getattr(node.test, "attr", "")) == "TYPE_CHECKING":
        for alternative in node.orelse:  # the body never runs
            yield from _imports_in(alternative, package)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _imports_in(child, package)


def find_module(name: str, specs: dict[str, ModuleSpec | None] | None = None) -> Module | None:
    """The file of module ``name``, found without importing it; ``None`` where there is none.

    ``specs`` has those that were found before, also of packages, and receives new ones.
    """
    spec = _spec(name, {} if specs is None else specs)
    origin = Path(spec.origin) if spec and spec.has_location and spec.origin else None
    is_package = bool(spec and spec.submodule_search_locations is not None)
    return Module(name, origin, is_package) if origin and origin.is_file() else None


def _spec(name: str, specs: dict[str, ModuleSpec | None]) -> ModuleSpec | None:
    """The spec of module ``name``. Its packages are not imported, as ``importlib.util.find_spec`` would do."""
    if name not in specs:
        specs[name] = _new_spec(name, specs)
    return specs[name]


def _new_spec(name: str, specs: dict[str, ModuleSpec | None]) -> ModuleSpec | None:
    package = name.rpartition(".")[0]
    try:
        if not package:
            return find_spec(name)
    except (ImportError, ValueError):  # a module created at run time, without a spec
        return None
    above = _spec(package, specs)
    folders = None if above is None else above.submodule_search_locations
    if folders is None:
        return None
    # A package without an __init__.py looks for the one above it, which need not be imported here.
    return PathFinder.find_spec(name, list(getattr(folders, "_path", folders)))
