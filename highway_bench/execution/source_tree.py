"""Source tree: the source code that modules run through, read without importing anything.

Comments, docstrings, layout and printed texts (labels of metrics, summaries of blocks, help of words) do not count. The
body of ``if torch.compiler.is_compiling():`` in this package counts for compiled cells only.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from highway_bench.errors import BadInput

PACKAGE = "highway_bench"

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

PRINTED_OF_METRICS = ("label", "hint", "percent")
PRINTED_OF_ENTRIES = ("summary", "source", "equation")  # of what is registered

LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib"))


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
        return self.home is None or any(self.home.is_relative_to(library) for library in LIBRARIES)

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


class Import(NamedTuple):
    """An import statement: ``import module``, or ``from module import names``."""

    module: str
    names: tuple[str, ...] = ()


class Code(NamedTuple):
    """What a module's source means, as a hash; the same without what only ``torch.compile`` runs; what it imports."""

    meaning: str
    eager: str
    imports: tuple[Import, ...]


@lru_cache(maxsize=4096)
def code_of(source: bytes, name: str, is_package: bool) -> Code:
    """The code of the module ``name``, parsed once in a process: every run reads all files again, and few change."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise BadInput(f"module {name!r} is no valid Python: {error.msg}, line {error.lineno}") from error
    package = name.split(".") if is_package else name.split(".")[:-1]
    meaning, imports = hash_of(json.dumps(_plain(tree))), tuple(_imports_in(tree, package))
    own = package[:1] == [PACKAGE]
    return Code(meaning, hash_of(json.dumps(_plain(WithoutCompiled().visit(tree)))) if own else meaning, imports)


class WithoutCompiled(ast.NodeTransformer):
    """Removes ``if torch.compiler.is_compiling():`` with its body, of which the test is false unless torch compiles."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test) == "torch.compiler.is_compiling()" else node


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


def _plain(node: object) -> object:
    """A syntax tree as nested lists, without docstrings, positions and empty fields.

    Without empty fields the hash is the same in Python versions that add fields to the tree.
    """
    if isinstance(node, ast.Call):
        node = _without_texts(node)
    if isinstance(node, ast.AST):
        fields = [(name, _without_docstring(node, name, value)) for name, value in ast.iter_fields(node)]
        return [type(node).__name__, *([name, _plain(value)] for name, value in fields if value not in (None, []))]
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return f"{type(node).__name__} {node!r}"


def _without_texts(node: ast.Call) -> ast.Call:
    """A call without what is only printed: labels of a ``Metric``, texts of a ``register_…`` call, a word's meaning."""
    name = getattr(node.func, "id", "")
    if getattr(node.func, "attr", "") == "meaning":
        return ast.Call(node.func, [], [])
    printed = PRINTED_OF_METRICS if name == "Metric" else PRINTED_OF_ENTRIES if name.startswith("register_") else ()
    return ast.Call(node.func, node.args, [option for option in node.keywords if option.arg not in printed])


def _without_docstring(node: ast.AST, name: str, value: object) -> object:
    documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    if documented and name == "body" and isinstance(value, list) and value:
        first = value[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return value[1:]
    return value


def hash_of(text: str) -> str:
    """32 hexadecimal digits that stand for ``text``."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]
