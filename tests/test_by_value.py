"""What a notebook's cell defines: its key is what it does, and it travels to processes that cannot import it."""

import ast
import dataclasses
import os
import subprocess
import sys
import threading

import pytest
import torch

from highway_bench.by_value import is_importable, named_value, packed, reference_to, unpacked, value_of
from highway_bench.errors import BadInput
from highway_bench.measure.processes import call_once
from highway_bench.registry import imported, load_plugin

CELL = '''
"""A cell."""
import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import neighbour

@dataclass
class Options:
    slope: float = 0.5
    names: tuple = ("a", "b")

TABLE = {"gain": 2.0, "of": [1, 2]}
KINDS = {"alpha", "beta", "gamma", "delta"}
OPTIONS = Options()
MASK = torch.ones(3)
GRID = np.arange(4.0)
step = functools.partial(math.pow, 2.0)

def helper(x):
    """Help."""
    return torch.tanh(x * TABLE["gain"])  # a comment

def outer(factor):
    def inner(x):
        return factor * x
    return inner

double = outer(2)

class Base(nn.Module):
    power = 1
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

class Layer(Base):
    def forward(self, x):
        unused = MASK, GRID, OPTIONS
        if "alpha" in KINDS and self.power:
            return helper(self.map(x)) + double(x) + step(1) + neighbour.shift(x) + [i for i in (1, 2)][0]
        return (lambda y: y + 1)(x)
'''
EDITS = {
    "a helper": ("torch.tanh", "torch.relu"),
    "a base": ("nn.Linear(width, width)", "nn.Linear(width, width, bias=False)"),
    "a class attribute": ("power = 1", "power = 2"),
    "a closure": ("outer(2)", "outer(3)"),
    "an argument of a partial": ("math.pow, 2.0", "math.pow, 3.0"),
    "a dict": ('"gain": 2.0', '"gain": 2.5'),
    "a list in a dict": ('"of": [1, 2]', '"of": [1, 3]'),
    "a set": ('"delta"', '"epsilon"'),
    "a dataclass": ("slope: float = 0.5", "slope: float = 0.25"),
    "a tensor": ("torch.ones(3)", "torch.zeros(3)"),
    "an array": ("np.arange(4.0)", "np.arange(5.0)"),
    "a lambda within": ("y + 1", "y + 2"),
    "a comprehension": ("[i for i", "[2 * i for i"),
    "the type of a number": ("power = 1", "power = True"),
}
SAME = {
    "a comment": ("# a comment", "# another"),
    "a docstring": ('"""Help."""', '"""Help more."""'),
    "no docstring": ('    """Help."""\n', ""),
    "empty lines": ("def outer", "\n\n\ndef outer"),
    "what it does not reach": ('"""A cell."""', "other = 3"),
}


@pytest.fixture(autouse=True)
def neighbour(tmp_path, monkeypatch):
    path = tmp_path / "neighbour.py"
    path.write_text("def shift(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "neighbour", raising=False)
    return path


def run_cell(text, name="__main__", file="cell.py"):
    scope = {"__name__": name} if name else {}
    exec(compile(text, file, "exec"), scope)
    return scope


def key(text=CELL, **where):
    return value_of(run_cell(text, **where)["Layer"], "Layer").key


@pytest.mark.parametrize("edit", EDITS)
def test_another_value(edit):
    old, new = EDITS[edit]
    assert old in CELL
    assert key(CELL.replace(old, new, 1)) != key()


@pytest.mark.parametrize("edit", SAME)
def test_the_same_value(edit):
    old, new = SAME[edit]
    assert old in CELL
    assert key(CELL.replace(old, new, 1), file="other.py") == key()


def test_statements_that_are_compiled_one_by_one_as_in_a_notebook():
    scope = {"__name__": "__main__"}
    for statement in ast.parse(CELL).body:
        exec(compile(ast.Module([statement], []), "cell", "exec"), scope)
    assert value_of(scope["Layer"], "Layer").key == key()


def test_a_neighbouring_file_is_part_of_it(neighbour):
    before = key()
    assert value_of(run_cell(CELL)["Layer"], "Layer").modules == {"neighbour"}
    neighbour.write_text("def shift(x):\n    # as before\n    return x + 1\n")
    assert key() == before
    neighbour.write_text("def shift(x):\n    return x + 2\n")
    assert key() != before


def test_another_process_has_the_same_key(neighbour):
    """Sets and hashes of text are in another order there."""
    text = f"from tests.test_by_value import key; print(key({CELL!r}))"
    path = os.pathsep.join([str(neighbour.parent), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key()


def test_two_lambdas_of_a_line_and_two_versions_of_a_class():
    one, other = [lambda x: x + 1, lambda x: x + 2]
    assert reference_to(one) != reference_to(other)
    assert reference_to(one).startswith("__main__:lambda-")
    first, second = (run_cell(CELL.replace("power = 1", f"power = {power}"))["Layer"] for power in (3, 4))
    names = [reference_to(first), reference_to(second)]
    assert len({*names}) == 2
    assert [imported(name, "family") for name in names] == [first, second]
    assert reference_to(one, "plus").startswith("__main__:plus-")


def test_what_a_module_has_goes_by_its_name():
    assert reference_to(dataclasses.field) == "dataclasses:field"
    assert not is_importable(run_cell(CELL, name="")["Layer"])  # by exec, without a name of its own


@pytest.mark.parametrize("made", [threading.Lock, lambda: (i for i in "ab")])
def test_what_has_no_value_is_refused_in_a_line(made):
    scope = run_cell("class Layer:\n    def forward(self, x):\n        return hidden\n")
    scope["hidden"] = made()
    with pytest.raises(BadInput, match="hidden"):
        value_of(scope["Layer"], "Layer")


def test_cycles_end():
    scope = run_cell(
        "loop = []\nloop.append(loop)\ndef f(n):\n    return n and f(n - 1) and loop and g\ndef g():\n    return f\n"
    )
    assert value_of(scope["f"], "f").key != value_of(scope["g"], "g").key


def test_it_travels_with_all_that_its_code_looks_for(neighbour):
    """A worker places the globals in the module that the functions name: compiled code looks there."""
    layer = run_cell(CELL)["Layer"]
    reference = reference_to(layer)
    plugin = packed([reference], {})
    assert packed([reference], {}) == plugin
    assert unpacked(plugin) == {}  # this process has it
    assert named_value(reference) is not None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        expected = layer(3)(torch.ones(2, 3))
    for found in call_once(300, outputs_there, plugin, reference):
        assert torch.equal(found, expected)


def outputs_there(plugin, reference):
    """What the layer gives in another process, eager and compiled."""
    load_plugin(plugin)
    torch.manual_seed(0)
    layer = imported(reference, "family")(3)
    with torch.no_grad():
        return [layer(torch.ones(2, 3)), torch.compile(layer, backend="eager")(torch.ones(2, 3))]
