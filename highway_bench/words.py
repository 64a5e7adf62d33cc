"""Words of a recipe: what each may stand for, as a test and in words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from highway_bench.errors import BadInput


@dataclass(frozen=True)
class Word:
    """A word of a recipe: what it may stand for, in words (``says``) and as a test, and what it means (``help``).

    ``type`` names the kind of value: ``number``, ``whole number``, ``name``, …
    """

    says: str
    holds: Callable[[Any], bool]
    help: str = ""
    type: str = "value"

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadInput`` if the word ``name`` does not allow ``value``."""
        if not self.holds(value):
            raise BadInput(f"a recipe's {name} must be {self.says}, not {value!r}")

    def meaning(self, text: str) -> Word:
        """This word with ``text`` as its help: one sentence."""
        return replace(self, help=text)


def number(
    *, above: float | None = None, least: float | None = None, below: float | None = None, most: float | None = None
) -> Word:
    """A finite number between its ends: ``above`` and ``below`` are exclusive, ``least`` and ``most`` inclusive.

    A bool, which is an ``int`` in Python, is not a number.
    """

    def holds(value: Any) -> bool:
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) <= sys.float_info.max
            and (above is None or value > above)
            and (least is None or value >= least)
            and (below is None or value < below)
            and (most is None or value <= most)
        )

    ends = {"above": above, "of at least": least, "below": below, "at most": most}
    says = " and ".join(f"{way} {end}" for way, end in ends.items() if end is not None)
    return Word(f"a number {says}", holds, type="number")


def whole(least: int) -> Word:
    """A whole number of at least ``least``."""
    return Word(
        f"a whole number, {least} or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        type="whole number",
    )


def one_of(*known: str) -> Word:
    """One of a few names."""
    return Word(" or ".join(known), lambda value: value in known, type="name")


def either(word: Word, other: str | None) -> Word:
    """A value that ``word`` allows, or ``other`` itself."""
    return replace(
        word, says=f"{word.says}, or {other or 'none'}", holds=lambda value: value == other or word.holds(value)
    )


def truth() -> Word:
    """True or false."""
    return Word("true or false", lambda value: isinstance(value, bool), type="truth value")


def mapping(says: str, holds: Callable[[Any], bool] = lambda value: True) -> Word:
    """Values by name, of which ``holds`` is true."""
    return Word(says, lambda value: isinstance(value, Mapping) and holds(value), type="values by name")


def listed(word: Word) -> Word:
    """Several of what ``word`` is, at least one."""
    return Word(
        f"a list, not empty, each {word.says}",
        lambda value: isinstance(value, list | tuple) and len(value) > 0 and all(map(word.holds, value)),
        type=f"list, each a {word.type}",
    )


REFERENCE = Word(
    "a function, as module:function",
    lambda value: isinstance(value, str) and all(value.partition(":")),
    type="name",
)
POSITIVE = number(above=0)
NOT_NEGATIVE = number(least=0)
