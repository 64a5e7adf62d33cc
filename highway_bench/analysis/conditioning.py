"""Jacobian: how a function responds to small changes of its input, and how its gradient changes along a line.

A function here maps (items, …) to a tensor of the same shape, each item independently of the others. So one backward
pass over n copies of an item gives n rows of its Jacobian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from highway_bench.analysis.signal import cosines

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Spectrum:
    """A square matrix's singular values: largest, smallest, the mean of their squares (‖J‖²_F / d), and how many are
    above 0 at the matrix's precision (largest × d × machine epsilon)."""

    largest: float
    smallest: float
    mean_square: float
    rank: int
    size: int

    @property
    def spread(self) -> float | None:
        """log₁₀(largest / smallest); ``None`` for a singular matrix."""
        return math.log10(self.largest / self.smallest) if self.rank == self.size else None


def jacobian(function: Function, x: Tensor) -> Tensor:
    """d ``function``(x) / dx for one item x of shape (1, …): (n, n), row i the gradient of output i, n numbers an item.

    The item is repeated n times; one backward pass then gives one row per copy.
    """
    count = x.numel()
    copies = x.detach().expand(count, *x.shape[1:]).clone().requires_grad_()
    y = function(copies)
    units = torch.eye(count, dtype=y.dtype, device=y.device).view_as(y)
    return torch.autograd.grad(y, copies, units, materialize_grads=True)[0].flatten(1)


def spectrum(matrix: Tensor) -> Spectrum | None:
    """The singular values of a square ``matrix``; ``None`` where not all of its numbers are finite."""
    if not torch.isfinite(matrix).all():
        return None
    values = torch.linalg.svdvals(matrix)
    largest, size = float(values[0]), len(values)
    least = largest * size * torch.finfo(matrix.dtype).eps
    return Spectrum(largest, float(values[-1]), float(values.square().mean()), int((values > least).sum()), size)


def gains(function: Function, x: Tensor, generator: torch.Generator) -> list[float]:
    """‖Jᵀv‖² / ‖v‖² of every item, each with its own standard-normal v; their mean is ‖J‖²_F / d.

    For square J this has the distribution of ‖Jv‖² / ‖v‖². It needs no forward-mode derivative, which some modules
    lack.
    """
    inputs = x.detach().clone().requires_grad_()
    y = function(inputs)
    v = torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y)
    pulled = torch.autograd.grad(y, inputs, v, materialize_grads=True)[0]
    squares = (pulled.flatten(1).double().square().sum(1), v.flatten(1).double().square().sum(1))
    ratios: list[float] = (squares[0] / squares[1]).tolist()
    return ratios


def line_gradients(function: Function, start: Tensor, end: Tensor, points: int, generator: torch.Generator) -> Tensor:
    """d⟨``function``(x), v⟩ / dx at ``points`` evenly spaced x from the item ``start`` to the item ``end``, for one
    standard-normal v: (points, n)."""
    share = torch.linspace(0, 1, points, dtype=start.dtype, device=start.device).view(-1, *[1] * start.ndim)
    x = torch.lerp(start.detach(), end.detach(), share).requires_grad_()
    y = function(x)
    v = torch.randn(y.shape[1:], generator=generator, dtype=torch.float64).to(y).expand_as(y)
    return torch.autograd.grad(y, x, v, materialize_grads=True)[0].flatten(1)


def neighbour_correlation(gradients: Tensor) -> float:
    """Mean cosine of the gradients of neighbouring points, (points, n): 1 for a linear function, 0 where gradients
    resemble noise (shattered gradients, arXiv:1702.08591). A pair with a zero gradient does not count; NaN where no
    pair is left."""
    similarities = cosines(gradients[:-1], gradients[1:])
    return float(similarities[torch.isfinite(similarities)].mean())
