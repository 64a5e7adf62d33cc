"""Recipe: how a network is trained, and the values that each recipe word allows."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from highway_bench.errors import BadInput

BETAS = (0.9, 0.999)  # Adam's, torch's defaults


@dataclass(frozen=True)
class Word:
    """The allowed values of a recipe word: ``says`` describes them, and ``holds`` tests a value."""

    says: str
    holds: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:
        """Raise ``BadInput`` if the word ``name`` does not allow ``value``."""
        if not self.holds(value):
            raise BadInput(f"a recipe's {name} must be {self.says}, not {value!r}")


def number(says: str, holds: Callable[[float], bool]) -> Word:
    """A finite number for which ``holds`` is true. A bool, which is an ``int`` in Python, is not a number."""
    return Word(
        f"a number {says}",
        lambda value: (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) <= sys.float_info.max
            and holds(value)
        ),
    )


def whole(least: int) -> Word:
    """A whole number of at least ``least``."""
    return Word(
        f"a whole number, {least} or more",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least,
    )


def one_of(*known: str) -> Word:
    """One of a few names."""
    return Word(" or ".join(known), lambda value: value in known)


def either(word: Word, other: str | None) -> Word:
    """A value that ``word`` allows, or ``other`` itself."""
    return Word(f"{word.says}, or {other or 'none'}", lambda value: value == other or word.holds(value))


POSITIVE = number("above 0", lambda value: value > 0)
NOT_NEGATIVE = number("of at least 0", lambda value: value >= 0)
TRAINING: Mapping[str, Word] = {
    "optimiser": one_of("sgd", "adam"),
    "rate": POSITIVE,
    "momentum": number("of at least 0 and below 1", lambda value: 0 <= value < 1),
    "decay": number("above 0 and at most 1", lambda value: 0 < value <= 1),
    "weight_decay": NOT_NEGATIVE,
    "epsilon": POSITIVE,
    "epsilon_place": one_of("inside", "outside"),
    "clip": either(POSITIVE, None),
    "last_batch": one_of("drop", "keep"),
    "steps": whole(1),
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
