"""Optimisers of P stacked networks, each with its own learning rates, momentum and weight decay.

The P networks' parameters of one name are one tensor (P, …). The equations are torch's; each constant is a vector (P,).
Every network is updated as ``torch.optim`` would update it alone, up to rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from highway_bench.errors import BadInput
from highway_bench.training.recipe import BETAS, Recipe


class StackedOptimiser(ABC):
    """Updates ``parameters``, each (P, …), by gradients of the same shapes.

    ``shares`` are factors on the learning rates, one a parameter. ``done`` is the number of steps before the next one.
    ``slots`` are the names, as in ``torch.optim``, of the state of a parameter; ``state`` has a list of tensors per
    slot, one tensor per parameter. ``rates`` (P,) are those of the next step. An update never waits for the device or
    reads from it, so a CUDA graph can capture it: the rates of all steps are on the device, and a counter there selects
    those of the next one.
    """

    slots: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        parameters: Sequence[Tensor],
        shares: Sequence[float],
        recipes: Sequence[Recipe],
        state: dict[str, list[Tensor]],
        done: int,
    ) -> None:
        self.parameters, self.shares = parameters, shares
        self.state = state
        self.clip = recipes[0].clip
        self.epsilon, self.epsilon_place = recipes[0].epsilon, recipes[0].epsilon_place
        device = parameters[0].device

        def each(values: Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)

        self.schedule = each([recipe.rates for recipe in recipes]).T.contiguous()  # (steps + 1, P)
        self.rates = self.schedule[done].clone()
        self.dtypes = {parameter.dtype for parameter in parameters}
        self.momenta = self._in_dtypes(each([recipe.momentum for recipe in recipes]))
        self.decays = self._in_dtypes(each([recipe.weight_decay for recipe in recipes]))
        self.decaying = any(recipe.weight_decay for recipe in recipes)
        self.done = torch.tensor(float(done), dtype=torch.float64, device=device)

    @torch.no_grad()
    def update(self, gradients: Sequence[Tensor]) -> None:
        """Take one step. ``gradients`` are not modified, for two of them may be one tensor."""
        if self.clip is not None:
            gradients = self._clipped(gradients, self.clip)
        if self.decaying:
            gradients = self._decayed(gradients)
        self.done.add_(1)
        self.move(gradients)
        self.rates.copy_(self.schedule.index_select(0, self.done.long().view(1))[0])

    @abstractmethod
    def move(self, gradients: Sequence[Tensor]) -> None:
        """Update the parameters at the current rates."""

    def _in_dtypes(self, values: Tensor) -> dict[torch.dtype, Tensor]:
        """``values`` in each dtype of the parameters, cast once instead of once per tensor."""
        return {dtype: values.to(dtype) for dtype in self.dtypes}

    def _clipped(self, gradients: Sequence[Tensor], most: float) -> list[Tensor]:
        """Each network's whole gradient scaled to a norm of at most ``most``, as ``clip_grad_norm_`` does."""
        norms = torch.stack([gradient.reshape(len(gradient), -1).norm(dim=1) for gradient in gradients]).norm(dim=0)
        scales = self._in_dtypes((most / (norms + 1e-6)).clamp(max=1.0))
        return [gradient * across(scales[gradient.dtype], gradient) for gradient in gradients]

    def _decayed(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """``gradients`` plus weight decay. Biases and gains, which are vectors in one network, do not decay."""
        return [
            gradient
            if parameter.ndim <= 2
            else torch.addcmul(gradient, parameter, across(self.decays[parameter.dtype], parameter))
            for gradient, parameter in zip(gradients, self.parameters, strict=True)
        ]


class StackedSgd(StackedOptimiser):
    """SGD with momentum: m ← μm + g, p ← p − ηm. One pass over each tensor while it is in the cache."""

    slots = ("momentum_buffer",)

    def move(self, gradients: Sequence[Tensor]) -> None:
        rates = self._in_dtypes(-self.rates)
        momenta = self.state["momentum_buffer"]
        for parameter, share, gradient, momentum in zip(self.parameters, self.shares, gradients, momenta, strict=True):
            torch.addcmul(gradient, momentum, across(self.momenta[momentum.dtype], momentum), out=momentum)
            parameter.addcmul_(momentum, across(rates[parameter.dtype], parameter), value=share)


class StackedAdam(StackedOptimiser):
    """Adam: m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g², p ← p − η/(1 − β₁ᵗ) · m / (√(v/(1 − β₂ᵗ)) + ε),
    or, with ε outside of the bias correction, η/(1 − β₁ᵗ) · m · √(1 − β₂ᵗ) / (√v + ε)."""

    slots = ("exp_avg", "exp_avg_sq")

    def move(self, gradients: Sequence[Tensor]) -> None:
        first, second = BETAS
        rates = self._in_dtypes(-self.rates / (1 - first**self.done))
        roots = self._in_dtypes((1 - second**self.done).sqrt())
        means, squares = self.state["exp_avg"], self.state["exp_avg_sq"]
        for parameter, share, gradient, mean, square in zip(
            self.parameters, self.shares, gradients, means, squares, strict=True
        ):
            mean.lerp_(gradient, 1 - first)
            square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
            denominator, root = square.sqrt(), roots[square.dtype]
            if self.epsilon_place == "outside":
                denominator.add_(self.epsilon).div_(root)
            else:
                denominator.div_(root).add_(self.epsilon)
            parameter.addcmul_(mean / denominator, across(rates[parameter.dtype], parameter), value=share)


class StackedAdamW(StackedAdam):
    """AdamW: p ← (1 − ηλ)p, then Adam's step. Biases and gains do not decay."""

    def _decayed(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        shares = {dtype: -self.rates.to(dtype) * decays for dtype, decays in self.decays.items()}
        for parameter in self.parameters:
            if parameter.ndim > 2:
                parameter.addcmul_(parameter, across(shares[parameter.dtype], parameter))
        return gradients


STACKED: Mapping[str, type[StackedOptimiser]] = {"sgd": StackedSgd, "adam": StackedAdam, "adamw": StackedAdamW}


def across(values: Tensor, stacked: Tensor) -> Tensor:
    """``values`` (P,) as (P, 1, …), to be broadcast over ``stacked``."""
    return values.view(-1, *[1] * (stacked.ndim - 1))


def stacked_optimiser(name: str) -> type[StackedOptimiser]:
    """The optimiser of a recipe's name. Raises ``BadInput`` for an unknown name."""
    if name not in STACKED:
        raise BadInput(f"unknown optimiser {name!r}; known: {', '.join(STACKED)}")
    return STACKED[name]
