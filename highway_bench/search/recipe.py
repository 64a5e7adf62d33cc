"""Recipe: how a network is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from highway_bench.errors import BadInput, UnknownName

OPTIMISERS = ("sgd", "adam")
BETAS = (0.9, 0.999)  # Adam's, torch's defaults
BOUNDS: Mapping[str, tuple[str, Callable[[float], bool]]] = {
    "momentum": ("of at least 0 and below 1", lambda value: 0 <= value < 1),
    "weight_decay": ("of at least 0", lambda value: 0 <= value < math.inf),
    "epsilon": ("above 0", lambda value: 0 < value < math.inf),
    "clip": ("above 0, or none", lambda value: value > 0),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained. The learning rate falls exponentially to ``decay`` times its start over the run.

    Adam's ``epsilon`` stands inside of the bias correction, beside √(v/(1 − β₂ᵗ)), as in torch, or outside, beside √v
    itself, as in Keras (the ε̂ at the end of arXiv:1412.6980, §2): there it counts some thirty times as much in the
    first step, which matters where gradients are as small as it is.
    """

    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 0.1
    weight_decay: float = 0.0
    epsilon: float = 1e-8
    epsilon_place: Literal["inside", "outside"] = "inside"
    clip: float | None = None  # largest norm of the whole gradient
    last_batch: Literal["drop", "keep"] = "drop"  # what becomes of an epoch's last batch where it is incomplete
    steps: int = 500

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.rate > 0 or not 0 < self.decay <= 1:
            raise BadInput("a recipe needs steps of at least 1, a rate above 0 and a decay above 0 and at most 1")
        if self.optimiser not in OPTIMISERS:
            raise UnknownName("optimiser", str(self.optimiser), OPTIMISERS)
        for name, (says, holds) in BOUNDS.items():
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and holds(value)) and not (name == "clip" and value is None):
                raise BadInput(f"a recipe's {name} must be a number {says}, not {value!r}")
        if self.epsilon_place not in ("inside", "outside"):
            raise BadInput(f"a recipe's epsilon_place is inside or outside, not {self.epsilon_place!r}")
        if self.last_batch not in ("drop", "keep"):
            raise BadInput(f"a recipe's last_batch is drop or keep, not {self.last_batch!r}")

    @property
    def factor(self) -> float:
        """What the rate is multiplied by after every step."""
        return float(self.decay ** (1 / self.steps))

    def epsilon_at(self, step: int) -> float:
        """What torch's Adam must be given as ε in step 1, 2, …"""
        return self.epsilon if self.epsilon_place == "inside" else self.epsilon / math.sqrt(1 - BETAS[1] ** step)

    def steps_per_epoch(self, items: int, batch_size: int) -> int:
        """Batches that an epoch over ``items`` has."""
        return items // batch_size if self.last_batch == "drop" else math.ceil(items / batch_size)

    def optimiser_for(self, network: nn.Module) -> torch.optim.Optimizer:
        """The optimiser on all parameters; weight decay spares biases and gains, for it would pull gates open."""
        groups = [
            {"params": [p for p in network.parameters() if p.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if self.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=self.rate, momentum=self.momentum, fused=True)
        return torch.optim.Adam(groups, lr=self.rate, betas=BETAS, eps=self.epsilon_at(1), fused=True)
