"""Imports run one way: the contracts of ``[tool.importlinter]`` in pyproject.toml hold."""

import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
CONTRACTS = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_imports_run_one_way(contract, monkeypatch):
    monkeypatch.syspath_prepend(str(PYPROJECT.parent))  # restores sys.path, which lint_imports adds to
    assert lint_imports(str(PYPROJECT), limit_to_contracts=(contract,), no_cache=True, no_logo=True) == 0
