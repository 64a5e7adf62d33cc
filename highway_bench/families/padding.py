"""Padding: how a transform that mixes the steps of a sequence receives the lengths of its items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from highway_bench.data.base import PADDING
from highway_bench.families.parts import DirectParts


class ReadsLengths(DirectParts):
    """A transform whose output at one step depends on other steps, so that it must ignore padding.

    ``lengths``, (batch,) on the CPU and at least 1, are the steps of each item before its padding, during a forward
    pass; ``None`` where nothing is padding.
    """

    lengths: Tensor | None = None


def lengths_of(tokens: Tensor) -> Tensor | None:
    """The lengths, (batch,) on the CPU, of rows of tokens (batch, steps) without their trailing padding.

    ``None`` where no row has padding, and for tokens without storage; at least 1 for every row.
    """
    if tokens.is_meta:
        return None
    lengths = real_mask(tokens).sum(-1).cpu()
    return lengths if int(lengths.min()) < tokens.shape[-1] else None


def real_mask(tokens: Tensor) -> Tensor:
    """A mask (batch, steps) of the steps of rows of tokens that are not padding.

    In a row of padding only, the first step counts as real.
    """
    real = tokens != PADDING
    real[..., 0] |= ~real.any(-1)
    return real


def real_steps(tokens: Tensor) -> Tensor | None:
    """As ``real_mask``, but ``None`` where no row has padding."""
    real = real_mask(tokens)
    return None if bool(real.all()) else real


@contextmanager
def set_lengths(parts: Sequence[ReadsLengths], lengths: Tensor | None) -> Iterator[None]:
    """Set the ``lengths`` of the batch in each of ``parts`` while the context is open, and remove them afterwards."""
    for part in parts:
        part.lengths = lengths
    try:
        yield
    finally:
        for part in parts:
            part.lengths = None
