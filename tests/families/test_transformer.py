"""Attention, mlp and transformer against torch's own modules with the same weights, in float64."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor, nn

from highway_bench.families import Site, make_family
from highway_bench.families.attention import SelfAttention
from highway_bench.families.base import Transform
from highway_bench.network import Stack, build

WIDTH, HEADS, STEPS = 8, 4, 6


def mask(causal: bool) -> Tensor | None:
    return nn.Transformer.generate_square_subsequent_mask(STEPS, dtype=torch.float64) if causal else None


def copy_attention(source: SelfAttention, target: nn.MultiheadAttention) -> None:
    assert target.in_proj_weight is not None
    target.in_proj_weight.data.copy_(source.inward.weight)
    target.in_proj_bias.data.copy_(source.inward.bias)
    target.out_proj.load_state_dict(source.outward.state_dict())


def randomise(module: nn.Module) -> None:
    """Biases and gains off their starts, so that a forgotten one shows."""
    for parameter in module.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_torchs(causal: bool) -> None:
    family = make_family("attention", causal=causal)
    assert isinstance(family, Transform)
    ours = cast(SelfAttention, family.transform(Site(family, WIDTH)).double())
    randomise(ours)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True, dtype=torch.float64)
    copy_attention(ours, theirs)
    x = torch.randn(3, STEPS, WIDTH, dtype=torch.float64)
    expected, _ = theirs(x, x, x, attn_mask=mask(causal), need_weights=False)
    torch.testing.assert_close(ours(x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("block", "norm_first"), [("pre-norm", True), ("post-norm", False)])
def test_the_norm_blocks_are_torchs_encoder(block: str, norm_first: bool, causal: bool) -> None:
    depth = 2
    ours = cast(
        Stack, build(block, "transformer", width=WIDTH, depth=depth, family_options={"causal": causal}, seed=1)
    ).double()
    randomise(ours)
    layer = nn.TransformerEncoderLayer(
        WIDTH,
        HEADS,
        dim_feedforward=4 * WIDTH,
        dropout=0.0,
        activation="relu",
        batch_first=True,
        norm_first=norm_first,
        dtype=torch.float64,
    )
    final = nn.LayerNorm(WIDTH, dtype=torch.float64) if norm_first else None
    theirs = nn.TransformerEncoder(layer, depth, norm=final, enable_nested_tensor=False)
    for number, part in enumerate(theirs.layers):
        attend, feed = ours.joins[2 * number], ours.joins[2 * number + 1]
        copy_attention(attend.transform, part.self_attn)
        part.linear1.load_state_dict(feed.transform[0].state_dict())
        part.linear2.load_state_dict(feed.transform[2].state_dict())
        part.norm1.load_state_dict(attend.norm.state_dict())
        part.norm2.load_state_dict(feed.norm.state_dict())
    if final is not None:
        theirs.norm.load_state_dict(ours.leave.state_dict())
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())

    x = torch.randn(3, STEPS, WIDTH, dtype=torch.float64)
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    y, expected = ours(mine), theirs(other, mask=mask(causal))
    torch.testing.assert_close(y, expected, rtol=1e-9, atol=1e-11)
    cotangent = torch.randn_like(y)
    y.backward(cotangent)
    expected.backward(cotangent)
    torch.testing.assert_close(mine.grad, other.grad, rtol=1e-8, atol=1e-10)
