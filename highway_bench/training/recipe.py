"""Recipe: how a network is trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import nn

from highway_bench.blocks import scalar_names
from highway_bench.errors import BadInput
from highway_bench.words import NOT_NEGATIVE, POSITIVE, Word, either, number, one_of, whole

BETAS = (0.9, 0.999)  # Adam's, torch's defaults
SCALAR_SHARE = 0.01  # of the learning rate, for scalars that multiply the stream (karpathy/nanochat)


TRAINING: Mapping[str, Word] = {
    "optimiser": one_of("sgd", "adam", "adamw").meaning("The optimiser: SGD with momentum, Adam or AdamW."),
    "rate": POSITIVE.meaning("The learning rate of the first step after the warm-up."),
    "warm_up": whole(0).meaning("The number of first steps in which the learning rate rises linearly."),
    "schedule": one_of("exponential", "cosine").meaning("How the learning rate falls after the warm-up."),
    "momentum": number(least=0, below=1).meaning("SGD's momentum."),
    "decay": number(above=0, most=1).meaning("The learning rate at the end over its start; 1 is a constant rate."),
    "weight_decay": NOT_NEGATIVE.meaning(
        "The weight decay: of the weights in AdamW, in the gradient elsewhere; biases and gains have none."
    ),
    "epsilon": POSITIVE.meaning("Adam's epsilon."),
    "epsilon_place": one_of("inside", "outside").meaning("Whether Adam's epsilon is inside of its bias correction."),
    "clip": either(POSITIVE, None).meaning("The largest norm of the whole gradient; none does not clip."),
    "last_batch": one_of("drop", "keep").meaning("Whether an incomplete last batch of an epoch is dropped or kept."),
    "steps": whole(1).meaning("Training steps of a run."),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained.

    The learning rate of step s of S is η_s. It rises in W ``warm_up`` steps, and then falls from η, the ``rate``, to
    d·η, where d is ``decay``. With p = (s − 1 − W) / (S − W):

    - s ≤ W: η_s = η · s / (W + 1);
    - ``exponential``: η_s = η · d^p;
    - ``cosine`` (arXiv:1608.03983, eq. 5): η_s = η · (d + (1 − d) · (1 + cos πp) / 2).

    AdamW multiplies weights by 1 − η_s · ``weight_decay`` before Adam's step (arXiv:1711.05101). Both add ``epsilon``
    to √(v/(1 − β₂ᵗ)) ("inside" the bias correction, as in torch) or to √v ("outside", as in Keras; the ε̂ at the end
    of arXiv:1412.6980, §2). Outside, it weighs about thirty times as much in the first step, which matters where
    gradients are as small as ε.
    """

    optimiser: Literal["sgd", "adam", "adamw"] = "sgd"
    rate: float = 0.1
    warm_up: int = 0
    schedule: Literal["exponential", "cosine"] = "exponential"
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
        if self.warm_up >= self.steps:
            raise BadInput(f"a recipe's warm_up must be below its {self.steps} steps, not {self.warm_up}")

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """The learning rate of every step, and the one that the run ends at: ``steps`` + 1 numbers."""
        rising = self.rate * np.arange(1, self.warm_up + 1) / (self.warm_up + 1)
        falling = self.steps - self.warm_up
        if self.schedule == "cosine":
            turn = (1 + np.cos(np.pi * np.arange(falling + 1) / falling)) / 2
            rest = self.rate * (self.decay + (1 - self.decay) * turn)
        else:
            rest = np.multiply.accumulate([self.rate, *[self.decay ** (1 / falling)] * falling])
        return (*rising.tolist(), *rest.tolist())

    def epsilon_at(self, step: int) -> float:
        """The ε to set in torch's Adam for step 1, 2, …"""
        return self.epsilon if self.epsilon_place == "inside" else self.epsilon / math.sqrt(1 - BETAS[1] ** step)

    def steps_per_epoch(self, items: int, batch_size: int) -> int:
        """Number of batches in an epoch over ``items`` items."""
        return items // batch_size if self.last_batch == "drop" else math.ceil(items / batch_size)

    def optimiser_for(self, network: nn.Module) -> torch.optim.Optimizer:
        """The optimiser of all parameters that are not frozen. Biases and gains have no weight decay: it would pull
        gate biases to 0.

        A group's ``share`` is the factor on the learning rate of its parameters: see ``Block.scalars``. The optimiser
        is fused, unless a parameter is complex, for which torch has no fused form.
        """
        scalars = scalar_names(network)
        sorted_out: list[list[nn.Parameter]] = [[], [], []]
        trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
        for name, parameter in trained.items():
            sorted_out[2 if name in scalars else int(parameter.ndim <= 1)].append(parameter)
        decays, shares = (self.weight_decay, 0.0, 0.0), (1.0, 1.0, SCALAR_SHARE)
        groups = [
            {"params": parameters, "weight_decay": decay, "share": share}
            for parameters, decay, share in zip(sorted_out, decays, shares, strict=True)
            if parameters
        ]
        fused = None if any(parameter.is_complex() for parameter in trained.values()) else True
        if self.optimiser == "sgd":
            sgd = torch.optim.SGD(groups, lr=self.rate, momentum=self.momentum, fused=fused)
            if fused and self.momentum:
                sgd.register_step_pre_hook(start_late_momenta)
            return sgd
        make = torch.optim.Adam if self.optimiser == "adam" else torch.optim.AdamW
        return make(groups, lr=self.rate, betas=BETAS, eps=self.epsilon_at(1), fused=fused)


@torch.no_grad()
def start_late_momenta(sgd: torch.optim.Optimizer, *_: object) -> None:
    """Give parameters whose first gradient comes after other parameters' a momentum of 0, which it then equals.

    Torch's fused SGD starts the momenta of a group all at once, and fails where only some exist.
    """
    if not sgd.state or len(sgd.state) == sum(len(group["params"]) for group in sgd.param_groups):
        return
    for group in sgd.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and "momentum_buffer" not in sgd.state[parameter]:
                sgd.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
