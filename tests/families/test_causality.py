"""Causality: later steps are changed, and earlier outputs must stay as they are."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.families import family, is_causal, make_family, reads_ahead
from highway_bench.network import build

STEPS, WIDTH = 8, 4


class Ahead(nn.Module):
    """x plus ``scale`` times the input ``offset`` steps later, which is that of an earlier step if it is negative."""

    def __init__(self, offset: int, scale: float = 1.0) -> None:
        super().__init__()
        self.offset, self.scale = offset, nn.Parameter(torch.tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * x.roll(-self.offset, dims=1)


class Past(Ahead):
    """x plus the mean of all inputs so far."""

    def forward(self, x: Tensor) -> Tensor:
        counts = torch.arange(1, x.shape[1] + 1).unsqueeze(-1)
        return x + x.cumsum(1) / counts


class AheadInTraining(Ahead):
    """Reads later steps in training mode only."""

    def forward(self, x: Tensor) -> Tensor:
        return x + x.mean(1, keepdim=True) if self.training else x


@pytest.mark.parametrize(
    ("make", "causal"),
    [
        (lambda: nn.Linear(WIDTH, WIDTH), True),
        (lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5)), True),
        (lambda: Past(0), True),
        (lambda: Ahead(1), False),
        (lambda: Ahead(STEPS - 1), False),
        (lambda: Ahead(1, scale=0.0), False),  # a part that starts at zero
        (lambda: AheadInTraining(0), False),
        (lambda: nn.LayerNorm((STEPS, WIDTH)), False),
    ],
)
def test_causal_or_not(make, causal):
    assert is_causal(make, torch.randn(2, STEPS, WIDTH)) == causal


def lstm(width):
    class Forwards(nn.LSTM):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)[0]

    return Forwards(width, width, batch_first=True)


@pytest.mark.parametrize(
    ("of", "ahead"),
    [
        (make_family("bilstm"), True),
        (make_family("mlp"), False),
        (make_family("attention"), True),
        (make_family("attention", causal=True), False),
        (make_family("transformer"), True),
        (make_family("transformer", causal=True), False),
        (family(lstm, kind="sequence"), False),
        (family(lambda width: Ahead(1), kind="sequence"), True),
    ],
)
def test_families_that_read_later_steps(of, ahead):
    state = torch.get_rng_state()
    assert reads_ahead(of, WIDTH) == ahead
    with torch.device("meta"):
        assert reads_ahead(of, 2 * WIDTH) == ahead
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("block", blocks.names())
def test_no_block_reads_later_steps(block):
    """From tokens to predictions, in a causal family."""
    options = {"causal": True}
    make = partial(build, block, "transformer", width=8, depth=2, dataset="copy", family_options=options, seed=1)
    assert is_causal(make, torch.randint(1, 9, (2, STEPS)))
