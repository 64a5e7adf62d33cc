"""Lesion: one layer of a trained network cut out, its input copied to its output (arXiv:1507.06228, §4.2).

A join that carries its input has a ``carry`` module; in its place the layer is y = carry(x), and y = x where the shape
stays. That is a highway layer with T = 0, and a residual or pre-norm layer with a branch F = 0, exactly. Of a
connection that does more than carry and transform it is more than that: the norm after the sum is left out with the
branch (post-norm), and the input is copied whole where another gate would have scaled it (a carry gate of its own). A
layer without a carried path (plain) has no lesion.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


def carried_path(join: nn.Module) -> nn.Module | None:
    """The module that carries the input past ``join``'s transform; ``None`` where nothing is carried."""
    carry = getattr(join, "carry", None)
    return carry if isinstance(carry, nn.Module) else None


@contextmanager
def cut_out(joins: nn.ModuleList, place: int) -> Iterator[None]:
    """While it lasts, the join at ``place`` only carries. Raises ``ValueError`` where nothing is carried there."""
    join = joins[place]
    carry = carried_path(join)
    if carry is None:
        raise ValueError(f"{type(join).__name__} carries nothing, so it cannot be cut out")
    joins[place] = carry
    try:
        yield
    finally:
        joins[place] = join
