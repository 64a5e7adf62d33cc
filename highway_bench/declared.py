"""Declared entries: what the source of this package says of its blocks, families, tasks, …, read without an import."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .registry import natural, parsed

FILES = {
    "blocks": "blocks/*.py",
    "families": "families/*.py",
    "architectures": "architectures/*.py",
    "tasks": "tasks/*.py",
    "datasets": "data/*.py",
    "profiles": "plan/profiles.py",
}
Entry = dict[str, Any]


def declared(section: str) -> list[Entry]:
    """The entries of ``section``, a key of ``FILES``. Those from outside the package are missing."""
    entries = declared_in(sorted(Path(__file__).parent.glob(FILES[section])))
    return entries if section == "profiles" else sorted(entries, key=lambda entry: natural(entry["name"]))


def declared_in(paths: Iterable[Path]) -> list[Entry]:
    """The entries of some files, under the catalogue's names: what is written in the registration and in the class,
    inherited attributes included. What is no literal is given as its source text."""
    statements = [node for path in paths for node in parsed(path).body]
    owners = [node for node in statements if isinstance(node, ast.ClassDef)]
    classes = {owner.name: owner for owner in owners}
    entries, by_class = [], dict[str, Entry]()
    for owner in owners:
        for decorator in owner.decorator_list:
            if _called(decorator).startswith("register_"):
                by_class[owner.name] = _of_class(owner, classes) | _of_call(decorator)
                entries.append(by_class[owner.name])
    for node in statements:
        match node:
            case ast.Assign(value=ast.Call(func=ast.Name("Profile")) as call):
                entries.append(_of_call(call))
            case ast.Expr(ast.Call(func=ast.Name("register_variant"), args=[_, ast.Name(base)]) as call):
                about = _of_call(call)
                entries.append(by_class[base] | about.pop("about", {}) | about)
    return entries


def has_entry_points() -> bool:
    """Whether an installed package adds entries to a section."""
    return any(entry_points(group=f"highway_bench.{section}") for section in FILES)


def _called(node: ast.expr) -> str:
    """The name of what ``node`` calls, or of a decorator without a call."""
    return str(getattr(node.func if isinstance(node, ast.Call) else node, "id", ""))


def _of_call(node: ast.expr) -> Entry:
    """The arguments of a registration."""
    if not isinstance(node, ast.Call):
        return {}
    given = dict(zip(("name", "summary"), map(_value, node.args), strict=False))
    given |= {"group": "control"} if _called(node) == "register_control" else {}
    return given | {word.arg: _value(word.value) for word in node.keywords if word.arg}


def _of_class(owner: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Entry:
    """The attributes of a class; those of a dataclass's fields are ``options``."""
    entry: Entry = {"options": {}}
    for base in map(ast.unparse, reversed(owner.bases)):
        if base in classes:
            inherited = _of_class(classes[base], classes)
            entry |= inherited | {"options": entry["options"] | inherited["options"]}
    for node in owner.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                entry[name] = _value(value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
                if "ClassVar" not in ast.unparse(kind):
                    entry["options"][name] = _value(value)
    return entry | {"summary": (ast.get_docstring(owner) or "").partition("\n")[0]}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Dict):
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
