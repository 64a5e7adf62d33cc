"""The words of a cell's recipe, what each may stand for, and those that are the training's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.layouts import layouts
from highway_bench.search.recipe import NOT_NEGATIVE, POSITIVE, TRAINING, Recipe, Word, either, one_of, whole


def listed(word: Word) -> Word:
    """Several of what ``word`` is, at least one."""
    return Word(f"a list, not empty, each {word.says}",
                lambda value: isinstance(value, list | tuple) and len(value) > 0 and all(map(word.holds, value)))


DEPTHS, SEEDS, RATES = listed(whole(1)), listed(whole(0)), listed(POSITIVE)


def is_ladder(value: Any) -> bool:
    """Whether ``value`` has depths, a number of seeds or a list of them, and rates or none."""
    return (isinstance(value, Mapping) and {"depths", "seeds"} <= set(value) <= {"depths", "seeds", "rates"}
            and DEPTHS.holds(value["depths"]) and (whole(1).holds(value["seeds"]) or SEEDS.holds(value["seeds"]))
            and ("rates" not in value or RATES.holds(value["rates"])))


BESIDE: Mapping[str, Word] = {  # what a training task's recipe says beside how a network is trained
    "rates": RATES,
    "threshold": POSITIVE,
    "verdict": Word("true or false", lambda value: isinstance(value, bool)),
    "dataset": Word("the data set's options by name", lambda value: isinstance(value, Mapping)),
    "layout": either(Word("the name of a layout", lambda value: isinstance(value, str) and value in layouts), None),
    "evaluate": one_of("end", "epoch"),
    "mistakes": whole(0),
    "together": whole(1),
    "search": Word("a space, a number of trials and a seed", lambda value: isinstance(value, Mapping)),
    "ladder": Word("depths, seeds and, where they are tuned, rates", is_ladder),
}
WORDS: Mapping[str, Word] = {
    **TRAINING,
    **BESIDE,
    "rate": either(POSITIVE, "tuned"),
    "gain": POSITIVE,  # propagation's
    "seconds": NOT_NEGATIVE,  # throughput's
    "samples": whole(1),
}


def value_of(cell: Cell, word: str, default: Any) -> Any:
    """What the cell's recipe says for ``word``, or ``default``; raises ``BadInput`` for what it cannot stand for."""
    if word not in cell.recipe:
        return default
    WORDS[word].check(word, cell.recipe[word])
    return cell.recipe[word]


def recipe_from(options: Mapping[str, Any]) -> Recipe:
    """The training half of a cell's recipe. Raises ``BadInput`` for words that no training has, for values that they
    cannot have, and for a rate that is still to be tuned."""
    unknown = options.keys() - TRAINING.keys() - BESIDE.keys()
    if unknown:
        raise BadInput(f"a recipe has no {', '.join(sorted(unknown))}; it has {', '.join([*TRAINING, *BESIDE])}")
    for word, value in options.items():
        WORDS[word].check(word, value)
    if options.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in options.items() if word in TRAINING})
