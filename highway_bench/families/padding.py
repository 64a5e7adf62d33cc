"""Padding: how a transform that mixes the steps of a sequence learns where an item's own steps end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class ReadsLengths(nn.Module):
    """A transform whose answer at one step hangs on other steps, so that padding must be kept out of it.

    ``lengths`` are the steps of each item of the batch before its padding, on the CPU and at least 1, for the forward
    pass that is under way; ``None`` where nothing is padding.
    """

    lengths: Tensor | None = None


def lengths_of(tokens: Tensor) -> Tensor | None:
    """The lengths of rows (batch, steps) without the padding (token 0) at their ends; ``None`` where there is none."""
    lengths = (tokens != 0).sum(-1).clamp(min=1).cpu()
    return lengths if int(lengths.min()) < tokens.shape[-1] else None


def real_steps(tokens: Tensor) -> Tensor | None:
    """Which steps of rows (batch, steps) stand before the padding at their ends; ``None`` where there is no padding. A
    row of padding alone has its first step."""
    lengths = lengths_of(tokens)
    return None if lengths is None else (torch.arange(tokens.shape[-1]) < lengths.unsqueeze(-1)).to(tokens.device)


@contextmanager
def told_lengths(parts: Sequence[ReadsLengths], lengths: Tensor | None) -> Iterator[None]:
    """Within, each of ``parts`` knows the ``lengths`` of the batch; afterwards none does."""
    for part in parts:
        part.lengths = lengths
    try:
        yield
    finally:
        for part in parts:
            part.lengths = None
