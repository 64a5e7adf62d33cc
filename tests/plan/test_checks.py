"""Checks of a plan: a recipe that no training can follow is refused before anything is measured."""

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.schedule import with_needs
from highway_bench.plan.checks import check_cells
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from tests.inline_engine import cell_of


def check(task, recipe):
    Plan.of("smoke", Selection.of(task, recipe=recipe, device="cpu"))


@pytest.mark.parametrize(
    "recipe",
    [
        {"momentum": 1.5},
        {"steps": "many"},
        {"rate": True},
        {"rates": 5},
        {"rates": [0.1, "a"]},
        {"ladder": 3},
        {"ladder": {"depths": 4, "seeds": 2}},
        {"ladder": {"depths": [1, 2]}},
        {"dataset": 3},
        {"layout": "stemles"},
        {"layout": ["vgg"]},
        {"threshold": -1},
        {"verdict": 2},
        {"evaluate": "often"},
        {"search": 3},
        {"samples": "abc"},
        {"seconds": "abc"},
        {"gain": True},
    ],
)
def test_values_that_cannot_be(recipe):
    with pytest.raises(BadInput, match=next(iter(recipe))):
        check("*", recipe)


@pytest.mark.parametrize("task", ["trainability", "gates", "propagation"])
def test_words_that_no_training_has(task):
    with pytest.raises(BadInput, match="seconds"):
        check_cells(with_needs([cell_of(task, dataset="digits", recipe={"seconds": 1.0, "steps": 3})]))


def test_what_is_possible():
    check("propagation", {"gain": 2.0, "steps": 3})
    check("gates", {"steps": 3, "clip": 1.0, "layout": None})
    check("trainability", {"steps": 3, "rates": [0.1], "ladder": {"depths": [1, 2], "seeds": [0, 5]}})
    check("*", {"seconds": 1.0})
    check("*", {"steps": 3})
