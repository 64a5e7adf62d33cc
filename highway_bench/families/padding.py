"""Padding: how a transform that mixes the steps of a sequence receives the lengths of its items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class ReadsLengths(nn.Module):
    """A transform whose output at one step depends on other steps, so that it must ignore padding.

    ``lengths``, (batch,) on the CPU and at least 1, are the steps of each item before its padding, during a forward
    pass; ``None`` where nothing is padding.
    """

    lengths: Tensor | None = None


def lengths_of(tokens: Tensor) -> Tensor | None:
    """The lengths, (batch,), of rows of tokens (batch, steps) without their trailing padding (token 0).

    ``None`` where no row has padding; at least 1 for every row.
    """
    lengths = (tokens != 0).sum(-1).clamp(min=1).cpu()
    return lengths if int(lengths.min()) < tokens.shape[-1] else None


def real_steps(tokens: Tensor) -> Tensor | None:
    """A mask (batch, steps) of the steps before the trailing padding of rows of tokens.

    ``None`` where no row has padding. In a row of padding only, the first step counts as real.
    """
    lengths = lengths_of(tokens)
    return None if lengths is None else (torch.arange(tokens.shape[-1]) < lengths.unsqueeze(-1)).to(tokens.device)


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
