"""A module that was edited after its import is refused, and a reload of it is taken."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.key import check_unedited
from highway_bench.families import family
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection

NAME = "layers_that_change"
LAYER = """
from torch import nn
DEPTH = 1

class Mixed(nn.Linear):
    def forward(self, x):
        return super().forward(x).tanh()

def make(width):
    return Mixed(width, width)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    path = tmp_path / f"{NAME}.py"
    path.write_text(LAYER)
    yield path
    sys.modules.pop(NAME, None)


def module() -> ModuleType:
    return importlib.import_module(NAME)


EDITS: dict[str, Callable[[str], str]] = {
    "method": lambda text: text.replace("tanh", "sigmoid"),
    "function": lambda text: text.replace("Mixed(width, width)", "nn.Linear(width, width)"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_between_import_and_the_first_look(file: Path, edit: str) -> None:
    layers = module()
    file.write_text(EDITS[edit](LAYER))
    with pytest.raises(BadInput, match=f"module '{NAME}' was edited after it was imported: reload it"):
        check_unedited([NAME])
    importlib.reload(layers)
    check_unedited([NAME])


def test_an_edit_of_a_constant_after_a_look(file: Path) -> None:
    layers = module()
    check_unedited([NAME])
    file.write_text("# a comment\n" + LAYER)
    check_unedited([NAME])
    file.write_text(LAYER.replace("DEPTH = 1", "DEPTH = 200"))
    with pytest.raises(BadInput, match="reload it"):
        check_unedited([NAME])
    importlib.reload(layers)
    check_unedited([NAME])


def test_a_run_refuses_the_edited_layer(file: Path) -> None:
    layers = module()
    file.write_text(LAYER.replace("tanh", "sigmoid"))
    plan = Plan.of("smoke", Selection.of("memory", family=family(layers.make), block="plain", width=8))
    with pytest.raises(BadInput, match="reload it"):
        plan.estimate()
