"""The words of recipes that several tasks have, and a cell's recipe read by its task's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks.base import tasks
from highway_bench.training.recipe import TRAINING, Recipe, Word, mapping

DATASET: Mapping[str, Word] = {  # of a task whose networks read a data set
    "dataset": mapping("the data set's options by name").meaning("Options of the data set, by name."),
}


def value_of(cell: Cell, word: str, default: Any) -> Any:
    """What the cell's recipe says for ``word``, or ``default``; raises ``BadInput`` for a word that its task does not
    have, and for a value that the word cannot have."""
    if word not in cell.recipe:
        return default
    tasks.get(cell.task).word(word).check(word, cell.recipe[word])
    return cell.recipe[word]


def recipe_from(cell: Cell) -> Recipe:
    """How the cell's network is trained. Raises ``BadInput`` for words of its recipe that its task does not have, for
    values that they cannot have, and for a rate that is still to be tuned."""
    for word in cell.recipe:
        value_of(cell, word, None)
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in cell.recipe.items() if word in TRAINING})
