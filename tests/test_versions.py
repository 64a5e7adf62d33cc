"""What lets the package run with other versions: torch's internals in one module, and bounds that are run."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from highway_bench.measure.torch_internals import COUNTERS, Internal, LacksInternal

ROOT = Path(__file__).parents[1]
HOME = ROOT / "highway_bench/measure/torch_internals.py"
PUBLIC = {"_asdict", "_fields", "_replace", "_exit"}  # of named tuples and of os, in spite of the underscore
ATTRIBUTES = {*dir(torch.ones(1)), *dir(nn.Linear(1, 1))}


def is_internal(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in re.split("[.:]", name))


def internals_in(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """Names of torch with an underscore: imported, taken as attributes, or in a text that looks one up."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [prefix + one.name for one in node.names]
            yield from (name for name in names if name.split(".")[0] == "torch" and is_internal(name))
        elif isinstance(node, ast.Attribute) and is_internal(node.attr) and node.attr not in own | PUBLIC:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            looked_up = node.value in ATTRIBUTES or re.fullmatch(r"torch[\w.:]*", node.value)
            yield from [node.value] if looked_up and is_internal(node.value) else []


def names_of(tree: ast.AST) -> set[str]:
    """Names that a module defines or assigns."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return found | {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}


def test_names_of_torch_with_an_underscore_stand_in_one_module() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "highway_bench").rglob("*.py")}
    own = set().union(*map(names_of, trees.values()))
    home = set(internals_in(trees.pop(HOME), own))
    assert "_version" in home
    assert {path.name: found for path, tree in trees.items() if (found := list(internals_in(tree, own)))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from torch._inductor.utils import clear_caches",
        "torch.cuda._sleep(1)",
        "x._version",
        "getattr(module, '_compiled_call_impl', None)",
        "resolve_name('torch.cuda:_sleep')",
    ],
)
def test_one_that_stands_elsewhere_is_found(line: str) -> None:
    assert len(list(internals_in(ast.parse(line), set()))) == 1


def test_what_is_lost_without_one_is_in_the_message() -> None:
    absent = Internal(("torch._nowhere:name", "torch.cuda:_nothing"), "nothing is timed")
    assert absent.found is None
    expected = f"torch {torch.__version__} has no torch._nowhere.name or torch.cuda._nothing: nothing is timed"
    with pytest.raises(LacksInternal, match=re.escape(expected)):
        absent.needed()
    assert COUNTERS.lack is None


def test_the_lowest_set_has_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(need.partition(",")[0].split(">=") for need in project["dependencies"])
    lines = (ROOT / "tests/versions/lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: lowest[name] for name in bounds if not (lowest[name] + ".").startswith(f"{bounds[name]}.")} == {}
