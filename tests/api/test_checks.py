"""Checks of a plan: a recipe that no training can follow is refused before anything is measured."""

from __future__ import annotations

from typing import Any

import pytest

from highway_bench.api.checks import check_recipe
from highway_bench.errors import BadInput, UnknownName
from highway_bench.run.plan import Selection, plan
from highway_bench.run.profiles import get_profile


def check(task: str, recipe: dict[str, Any]) -> None:
    planned = plan("smoke", Selection(tasks=[task], recipe=recipe, device="cpu"))
    check_recipe(recipe, get_profile("smoke"), [one.cell for one in planned])


@pytest.mark.parametrize("task", ["trainability", "gates", "propagation"])
@pytest.mark.parametrize(("recipe", "says"), [
    ({"momentum": 1.5}, "^a recipe's momentum must be a number of at least 0 and below 1, not 1.5$"),
    ({"optimiser": "lion"}, "^unknown optimiser 'lion'; known: sgd, adam$"),
    ({"steps": 0}, "^a recipe needs steps of at least 1"),
    ({"steps": "many"}, "not supported between instances"),
    ({"seconds": 1.0}, "^a recipe has no seconds"),
])
def test_what_no_training_can_follow(task: str, recipe: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        check(task, recipe)


@pytest.mark.parametrize("gain", [0.0, "large", True])
def test_a_gain_that_is_none(gain: Any) -> None:
    with pytest.raises(BadInput, match=r"^a gain is a number above 0, not"):
        check("propagation", {"gain": gain})


def test_what_is_possible() -> None:
    check("propagation", {"gain": 2.0, "steps": 3})
    check("gates", {"steps": 3, "clip": 1.0})
    check("trainability", {"steps": 3, "rates": [0.1]})
    check("cost", {"momentum": 1.5})  # of no training
    with pytest.raises(UnknownName, match="unknown recipe word 'stepz'; did you mean steps"):
        check("gates", {"stepz": 3})
