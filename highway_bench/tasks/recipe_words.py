"""The words of recipes: what several tasks compose theirs from, and a cell's recipe read by its task's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.architectures import architectures
from highway_bench.cell import Cell
from highway_bench.errors import BadInput, near_names
from highway_bench.tasks.base import tasks
from highway_bench.training.recipe import POSITIVE, TRAINING, Recipe, Word, either


def listed(word: Word) -> Word:
    """Several of what ``word`` is, at least one."""
    return Word(
        f"a list, not empty, each {word.says}",
        lambda value: isinstance(value, list | tuple) and len(value) > 0 and all(map(word.holds, value)),
    )


RATES = listed(POSITIVE)
LAYOUT: Mapping[str, Word] = {
    "layout": either(
        Word("the name of an architecture", lambda value: isinstance(value, str) and value in architectures), None
    ),
}
ON_DATA: Mapping[str, Word] = {  # of a task whose networks read a data set
    **LAYOUT,
    "dataset": Word("the data set's options by name", lambda value: isinstance(value, Mapping)),
}


def value_of(cell: Cell, word: str, default: Any) -> Any:
    """What the cell's recipe says for ``word``, or ``default``; raises ``BadInput`` for a word that its task does not
    have, and for a value that the word cannot have."""
    if word not in cell.recipe:
        return default
    check_word(cell, word)
    return cell.recipe[word]


def check_word(cell: Cell, word: str) -> None:
    """Raise ``BadInput`` where the cell's task has no such word of a recipe, or the word cannot have this value."""
    words = tasks.get(cell.task).recipe_words
    if word not in words:
        raise BadInput(f"task {cell.task!r} has no recipe word {word!r}; {near_names(word, words)}")
    words[word].check(word, cell.recipe[word])


def recipe_from(cell: Cell) -> Recipe:
    """How the cell's network is trained. Raises ``BadInput`` for words of its recipe that its task does not have, for
    values that they cannot have, and for a rate that is still to be tuned."""
    for word in cell.recipe:
        check_word(cell, word)
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in cell.recipe.items() if word in TRAINING})
