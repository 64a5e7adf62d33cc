"""Recipe words that several tasks share, and readers of a cell's recipe that check it against its task's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks.base import tasks
from highway_bench.training.recipe import TRAINING, Recipe, Word, mapping

DATASET: Mapping[str, Word] = {  # of tasks whose networks read a data set
    "dataset": mapping("the data set's options by name").meaning("Options of the data set, by name."),
}


def value_of(cell: Cell, word: str, default: Any) -> Any:
    """The value of ``word`` in the cell's recipe, or ``default`` where the recipe lacks it.

    Raises ``BadInput`` where the task has no such word, or the word cannot have this value.
    """
    if word not in cell.recipe:
        return default
    tasks.get(cell.task).word(word).check(word, cell.recipe[word])
    return cell.recipe[word]


def recipe_from(cell: Cell) -> Recipe:
    """How the cell's network is trained.

    Raises ``BadInput`` for a word that the task does not have, a value that a word cannot have, and the rate ``tuned``.
    """
    for word in cell.recipe:
        value_of(cell, word, None)
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in cell.recipe.items() if word in TRAINING})
