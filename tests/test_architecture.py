"""Imports run one way: the contracts of ``[tool.importlinter]`` in pyproject.toml hold."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
CONTRACTS = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_imports_run_one_way(contract: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PYPROJECT.parent))  # restores sys.path, which lint_imports adds to
    assert lint_imports(str(PYPROJECT), limit_to_contracts=(contract,), no_cache=True, no_logo=True) == 0, (
        "an import goes against the house's order; the captured output names it"
    )


SOURCES = sorted((PYPROJECT.parent / "highway_bench").rglob("*.py"))


def test_a_class_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)]  # of type aliases
            names += [node.name] if isinstance(node, ast.ClassDef) else []
            for name in names:
                if name[:1].isupper() and not name.isupper() and len(name) > 1:
                    homes.setdefault(name, []).append(path.name)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


def test_no_module_imports_another_packages_private_one() -> None:
    wrong = []
    for path in SOURCES:
        package = path.relative_to(PYPROJECT.parent).parent.as_posix().replace("/", ".")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("highway_bench"):
                continue
            for name in [alias.name for alias in node.names]:
                parts = f"{node.module}.{name}".split(".")
                private = next(
                    (i for i, part in enumerate(parts) if part.startswith("_") and part != "__version__"), None
                )
                if private is not None and not f"{package}.".startswith(".".join(parts[:private]) + "."):
                    wrong.append(f"{path.name}: {'.'.join(parts)}")
    assert wrong == []
