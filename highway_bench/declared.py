"""Declared entries: what the source of this package says of its blocks, families, tasks, …, read without an import."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from highway_bench.registry import natural, parsed

FILES = {
    "blocks": "blocks/*.py",
    "families": "families/*.py",
    "architectures": "architectures/*.py",
    "tasks": "tasks/*.py",
    "datasets": "data/*.py",
    "profiles": "plan/profiles.py",
}
Entry = dict[str, Any]
Classes = Mapping[str, ast.ClassDef]


def declared(section: str) -> list[Entry]:
    """The entries of ``section``, a key of ``FILES``, under the catalogue's names: what is written in the registration
    and in the class, inherited attributes included. What is no literal is given as its source text.

    Entries from outside the package are missing (see ``has_entry_points``).
    """
    paths = sorted(Path(__file__).parent.glob(FILES[section]))
    statements = [node for path in paths for node in parsed(path).body]
    owners = [node for node in statements if isinstance(node, ast.ClassDef)]
    classes = {owner.name: owner for owner in owners}
    entries, by_class = [], dict[str, Entry]()
    for owner in owners:
        for decorator in owner.decorator_list:
            if _called(decorator).startswith("register_"):
                by_class[owner.name] = _of_class(owner, classes) | _of_call(decorator)
                entries.append(by_class[owner.name])
    for call in (node.value for node in statements if isinstance(node, ast.Expr | ast.Assign)):
        if _called(call) == "register_variant":
            about = _of_call(call)
            entries.append(by_class[about.pop("cls")] | about.pop("about", {}) | about)
        elif _called(call) == "Profile":
            entries.append(_of_call(call))
    return entries if section == "profiles" else sorted(entries, key=lambda entry: natural(entry["name"]))


def has_entry_points() -> bool:
    """Whether an installed package adds blocks, families or data sets."""
    return any(entry_points(group=f"highway_bench.{section}") for section in ("blocks", "families", "datasets"))


def _called(node: ast.expr) -> str:
    """The name of what ``node`` calls, or of a decorator without a call."""
    return str(getattr(node.func if isinstance(node, ast.Call) else node, "id", ""))


def _of_call(node: ast.expr) -> Entry:
    """The arguments of a registration."""
    if not isinstance(node, ast.Call):
        return {}
    second = "cls" if _called(node) == "register_variant" else "summary"
    given = dict(zip(("name", second), map(_value, node.args), strict=False))
    return given | {word.arg: _value(word.value) for word in node.keywords if word.arg}


def _of_class(owner: ast.ClassDef, classes: Classes) -> Entry:
    """The attributes of a class; those of a dataclass's fields are ``options``."""
    entry: Entry = {"options": {}}
    for base in reversed(owner.bases):
        if (name := ast.unparse(base)) in classes:
            inherited = _of_class(classes[name], classes)
            entry |= inherited | {"options": entry["options"] | inherited["options"]}
    for node in owner.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                entry[name] = _value(value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value) if value is not None:
                where = entry if "ClassVar" in ast.unparse(kind) else entry["options"]
                where[name] = _value(value)
    return entry | {"summary": (ast.get_docstring(owner) or "").partition("\n")[0]}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Dict):
        return {_value(key): _value(value) for key, value in zip(node.keys, node.values, strict=True) if key}
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
