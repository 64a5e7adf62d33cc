"""Recipe words that several tasks share, and how a cell's network is trained."""

from __future__ import annotations

from collections.abc import Mapping

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks.base import value_of
from highway_bench.training.recipe import TRAINING, Recipe
from highway_bench.words import Word, mapping

DATASET: Mapping[str, Word] = {  # of tasks whose networks read a data set
    "dataset": mapping("the data set's options by name").meaning("Options of the data set, by name."),
}


def recipe_from(cell: Cell) -> Recipe:
    """How the cell's network is trained.

    Raises ``BadInput`` for a word that the task does not have, a value that a word cannot have, and the rate ``tuned``.
    """
    for word in cell.recipe:
        value_of(cell, word, None)
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in cell.recipe.items() if word in TRAINING})
