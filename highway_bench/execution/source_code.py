"""Source code: what a module's source means and imports, read without importing it.

Comments, docstrings, layout and printed texts (labels of metrics, summaries of blocks, help of words) do not count. The
body of ``if torch.compiler.is_compiling():`` in this package counts for compiled cells only.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from highway_bench.errors import BadInput

PACKAGE = "highway_bench"
PRINTED_OF_METRICS = ("label", "hint", "percent")
PRINTED_OF_ENTRIES = ("summary", "source", "equation")  # of what is registered


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
