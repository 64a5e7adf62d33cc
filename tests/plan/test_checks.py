"""Checks of a plan: a recipe that no training can follow is refused before anything is measured."""

from __future__ import annotations

import math
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.schedule import with_needs
from highway_bench.plan.checks import check_cells
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection


def check(task: str, recipe: dict[str, Any]) -> None:
    Plan.of("smoke", Selection.of(task, recipe=recipe, device="cpu"))


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"momentum": 1.5}, "^a recipe's momentum must be a number of at least 0 and below 1, not 1.5$"),
        ({"optimiser": "lion"}, "^a recipe's optimiser must be sgd or adam or adamw, not 'lion'$"),
        ({"steps": 0}, "^a recipe's steps must be a whole number, 1 or more, not 0$"),
        ({"steps": 2.5}, "^a recipe's steps must be"),
        ({"steps": True}, "^a recipe's steps must be"),
        ({"steps": "many"}, "^a recipe's steps must be"),
        ({"rate": True}, "^a recipe's rate must be a number above 0, or tuned, not True$"),
        ({"rate": math.inf}, "^a recipe's rate must be"),
        ({"rates": 5}, "^a recipe's rates must be a list, not empty, each a number above 0, not 5$"),
        ({"rates": [0.1, "a"]}, "^a recipe's rates must be"),
        ({"ladder": 3}, "^a recipe's ladder must be depths, seeds and, where they are tuned, rates, not 3$"),
        ({"ladder": {"depths": 4, "seeds": 2}}, "^a recipe's ladder must be"),
        ({"ladder": {"depths": [1, 2]}}, "^a recipe's ladder must be"),
        ({"dataset": 3}, "^a recipe's dataset must be the data set's options by name, not 3$"),
        ({"dataset": {"length": math.inf}}, "^recipe .* not JSON compliant"),
        (
            {"layout": "stemles"},
            "^a recipe's layout must be the name of an architecture, or none, not 'stemles'; did you mean stemless?",
        ),
        ({"layout": ["vgg"]}, r"^a recipe's layout must be the name of an architecture, or none, not \['vgg'\]$"),
        ({"threshold": "abc"}, "^a recipe's threshold must be a number above 0, not 'abc'$"),
        ({"threshold": -1}, "^a recipe's threshold must be"),
        ({"verdict": 2}, "^a recipe's verdict must be true or false, not 2$"),
        ({"evaluate": "often"}, "^a recipe's evaluate must be end or epoch or never, not 'often'$"),
        ({"search": 3}, "^a recipe's search must be a space, a number of trials and a seed, not 3$"),
        ({"samples": "abc"}, "^a recipe's samples must be a whole number, 1 or more, not 'abc'$"),
        ({"seconds": "abc"}, "^a recipe's seconds must be a number of at least 0, not 'abc'$"),
        ({"gain": True}, "^a recipe's gain must be a number above 0, not True$"),
    ],
)
def test_values_that_cannot_be(recipe: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        check("*", recipe)


@pytest.mark.parametrize("task", ["trainability", "gates", "propagation"])
def test_words_that_no_training_has(task: str) -> None:
    cell = Cell(
        task=task,
        block="plain",
        family="dense",
        depth=1,
        width=8,
        nominal_width=8,
        dataset="digits",
        recipe={"seconds": 1.0},
    )
    with pytest.raises(BadInput, match=f"^task '{task}' has no recipe word 'seconds'; known: "):
        check_cells(with_needs([cell.but(recipe={**cell.recipe, "steps": 3})]))


def test_what_is_possible() -> None:
    check("propagation", {"gain": 2.0, "steps": 3})
    check("gates", {"steps": 3, "clip": 1.0, "layout": None})
    check("trainability", {"steps": 3, "rates": [0.1], "ladder": {"depths": [1, 2], "seeds": [0, 5]}})
    check("*", {"seconds": 1.0})
    check("*", {"steps": 3})
