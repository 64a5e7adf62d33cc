"""Lesion: one layer of a trained network is replaced by a copy of its input (arXiv:1507.06228, §4.2).

A block that carries its input has a ``carry`` module. A lesioned layer is y = carry(x), which is y = x where the shape
stays. This equals a highway layer with T = 0, and a residual or pre-norm layer with a branch F = 0. In other blocks a
lesion removes more than the branch: post-norm also loses the norm after the sum, and a block with its own carry gate no
longer scales its input. A layer without a carried path (plain) has no lesion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


def carried_path(layer: nn.Module) -> nn.Module | None:
    """The module that carries the input past the transform of the block ``layer``; ``None`` where nothing is
    carried."""
    carry = getattr(layer, "carry", None)
    return carry if isinstance(carry, nn.Module) else None


@contextmanager
def cut_out(layers: nn.ModuleList, index: int) -> Iterator[None]:
    """While the context is open, layer ``index`` only carries. Raises ``ValueError`` where it carries nothing."""
    layer = layers[index]
    carry = carried_path(layer)
    if carry is None:
        raise ValueError(f"{type(layer).__name__} carries nothing, so it cannot be cut out")
    layers[index] = carry
    try:
        yield
    finally:
        layers[index] = layer
