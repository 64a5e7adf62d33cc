"""Recipe: how a network is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from highway_bench.words import NOT_NEGATIVE, POSITIVE, Word, either, number, one_of, whole

BETAS = (0.9, 0.999)  # Adam's, torch's defaults


TRAINING: Mapping[str, Word] = {
    "optimiser": one_of("sgd", "adam").meaning("The optimiser: SGD with momentum, or Adam."),
    "rate": POSITIVE.meaning("The learning rate of the first step."),
    "momentum": number(least=0, below=1).meaning("SGD's momentum."),
    "decay": number(above=0, most=1).meaning("The last step's learning rate over the first one's."),
    "weight_decay": NOT_NEGATIVE.meaning("The optimiser's weight decay; biases and gains have none."),
    "epsilon": POSITIVE.meaning("Adam's epsilon."),
    "epsilon_place": one_of("inside", "outside").meaning("Whether Adam's epsilon is inside of its bias correction."),
    "clip": either(POSITIVE, None).meaning("The largest norm of the whole gradient; none does not clip."),
    "last_batch": one_of("drop", "keep").meaning("Whether an incomplete last batch of an epoch is dropped or kept."),
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
