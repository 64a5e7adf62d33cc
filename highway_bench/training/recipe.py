"""Recipe: how a network is trained, and the values that each recipe word allows."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import nn

from highway_bench.errors import BadInput

BETAS = (0.9, 0.999)  # Adam's, torch's defaults


@dataclass(frozen=True)
class Bounds:
    """The ends of the numbers that a word may stand for: ``above`` and ``below`` are no such numbers themselves,
    ``least`` and ``most`` are."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies between them."""
        return (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        ends = {"above": self.above, "of at least": self.least, "below": self.below, "at most": self.most}
        return " and ".join(f"{way} {end}" for way, end in ends.items() if end is not None)


@dataclass(frozen=True)
class Word:
    """A word of a recipe: what it may stand for, in words (``says``) and as a test, and what it means (``help``).

    ``type`` names the kind of value (``number``, ``whole number``, ``name``, …) and ``bounds`` the ends of a number;
    ``choices`` are all the names where there are few.
    """

    says: str
    holds: Callable[[Any], bool]
    help: str = ""
    type: str = "value"
    bounds: Bounds | None = None
    choices: tuple[str, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadInput`` if the word ``name`` does not allow ``value``."""
        if not self.holds(value):
            raise BadInput(f"a recipe's {name} must be {self.says}, not {value!r}")

    def meaning(self, text: str) -> Word:
        """This word with ``text`` as its help: one sentence."""
        return replace(self, help=text)


def number(**ends: float) -> Word:
    """A finite number within ``Bounds(**ends)``. A bool, which is an ``int`` in Python, is not a number."""
    bounds = Bounds(**ends)

    def holds(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and abs(value) <= sys.float_info.max and bounds.holds(value)

    return Word(f"a number {bounds}", holds, type="number", bounds=bounds)


def whole(least: int) -> Word:
    """A whole number of at least ``least``."""
    return Word(
        f"a whole number, {least} or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
        type="whole number",
        bounds=Bounds(least=least),
    )


def one_of(*known: str) -> Word:
    """One of a few names."""
    return Word(" or ".join(known), lambda value: value in known, type="name", choices=known)


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
        bounds=word.bounds,
    )


POSITIVE = number(above=0)
NOT_NEGATIVE = number(least=0)
TRAINING: Mapping[str, Word] = {
    "optimiser": one_of("sgd", "adam").meaning("The optimiser: SGD with momentum, or Adam."),
    "rate": POSITIVE.meaning("The learning rate of the first step."),
    "momentum": number(least=0, below=1).meaning("SGD's momentum."),
    "decay": number(above=0, most=1).meaning("The last step's learning rate over the first one's."),
    "weight_decay": NOT_NEGATIVE.meaning("The optimiser's weight decay; biases and gains have none."),
    "epsilon": POSITIVE.meaning("Adam's epsilon."),
    "epsilon_place": one_of("inside", "outside").meaning("Whether Adam's epsilon is inside of its bias correction."),
    "clip": either(POSITIVE, None).meaning("The largest norm of the whole gradient; none does not clip."),
    "last_batch": one_of("drop", "keep").meaning("What becomes of an epoch's last batch where it is incomplete."),
    "steps": whole(1).meaning("Training steps of a run."),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained. The learning rate falls exponentially to ``decay`` times its start over the run.

    Adam adds ``epsilon`` to √(v/(1 − β₂ᵗ)) ("inside" the bias correction, as in torch) or to √v ("outside", as in
    Keras; the ε̂ at the end of arXiv:1412.6980, §2). Outside, it weighs about thirty times as much in the first step,
    which matters where gradients are as small as ε.
    """

    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 0.1
    weight_decay: float = 0.0
    epsilon: float = 1e-8
    epsilon_place: Literal["inside", "outside"] = "inside"
    clip: float | None = None  # largest norm of the whole gradient
    last_batch: Literal["drop", "keep"] = "drop"  # of an epoch, where it is incomplete
    steps: int = 500

    def __post_init__(self) -> None:
        for name, word in TRAINING.items():
            word.check(name, getattr(self, name))

    @property
    def factor(self) -> float:
        """The factor on the rate after every step."""
        return float(self.decay ** (1 / self.steps))

    def epsilon_at(self, step: int) -> float:
        """The ε to set in torch's Adam for step 1, 2, …"""
        return self.epsilon if self.epsilon_place == "inside" else self.epsilon / math.sqrt(1 - BETAS[1] ** step)

    def steps_per_epoch(self, items: int, batch_size: int) -> int:
        """Number of batches in an epoch over ``items`` items."""
        return items // batch_size if self.last_batch == "drop" else math.ceil(items / batch_size)

    def optimiser_for(self, network: nn.Module) -> torch.optim.Optimizer:
        """The optimiser of all parameters. Biases and gains have no weight decay: it would pull gate biases to 0."""
        groups = [
            {"params": [p for p in network.parameters() if p.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if self.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=self.rate, momentum=self.momentum, fused=True)
        return torch.optim.Adam(groups, lr=self.rate, betas=BETAS, eps=self.epsilon_at(1), fused=True)
