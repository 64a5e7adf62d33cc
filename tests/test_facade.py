"""The public names: every one can be had, editors see the same ones, and no sub-package takes a name's place."""

import ast
import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import highway_bench


@pytest.mark.parametrize("name", highway_bench.__all__)
def test_public_name(name):
    assert name in dir(highway_bench)
    assert not isinstance(getattr(highway_bench, name), ModuleType)


def test_type_checkers_see_the_table():
    tree = ast.parse(Path(highway_bench.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert seen == highway_bench._HOMES


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'highways'"):
        _ = highway_bench.highways


def test_no_public_name_is_a_modules():
    assert [name for name in highway_bench._HOMES if importlib.util.find_spec(f"highway_bench.{name}")] == []


def test_the_citation_has_the_version():
    root, version = Path(__file__).resolve().parents[1], highway_bench.__version__
    assert f"\nversion: {version}\n" in (root / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{version}}}," in (root / "docs/papers.md").read_text(encoding="utf-8")
