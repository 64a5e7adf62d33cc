"""Plain, residual, pre-norm and post-norm against their equations; lesions; the growth of a pre-norm stream."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor, nn

from highway_bench.families import families, make_family
from highway_bench.network import Stack, build

FAMILIES = families.names()
WIDTH = 8


def stack_of(block: str, family: str, depth: int = 2) -> tuple[Stack, Tensor]:
    stack = cast(Stack, build(block, family, width=WIDTH, depth=depth, seed=2)).double()
    return stack, make_family(family).example(3, WIDTH, seq_len=5).double()


@pytest.mark.parametrize("family", FAMILIES)
def test_each_block_is_its_equation(family: str) -> None:
    plain, x = stack_of("plain", family)
    residual, _ = stack_of("residual", family)
    pre, _ = stack_of("pre-norm", family)
    post, _ = stack_of("post-norm", family)
    joins = zip(plain.joins, residual.joins, pre.joins, post.joins, strict=True)
    y_plain = y_residual = y_pre = y_post = x
    for h, r, before, after in joins:
        y_plain = h.transform(y_plain)
        y_residual = y_residual + r.transform(y_residual)
        y_pre = y_pre + before.transform(before.norm(y_pre))
        y_post = after.norm(y_post + after.transform(y_post))
    torch.testing.assert_close(plain(x), y_plain, rtol=0, atol=0)
    torch.testing.assert_close(residual(x), y_residual, rtol=0, atol=0)
    torch.testing.assert_close(pre(x), pre.leave(y_pre), rtol=0, atol=0)
    torch.testing.assert_close(post(x), y_post, rtol=0, atol=0)


def test_a_pre_norm_stream_grows_by_one_variance_a_layer() -> None:
    """E|x_l|²/d = 1 + l where every branch is an independent linear map that keeps the variance."""
    depth, width = 40, 64
    stack = cast(
        Stack, build("pre-norm", "dense", family_options={"activation": "identity"}, width=width, depth=depth, seed=3)
    ).double()
    state = torch.randn(256, width, dtype=torch.float64)
    energy = [1.0]
    for join in stack.joins:
        state = join(state)
        energy.append(float(state.detach().square().mean()))
    slope = (energy[-1] - energy[0]) / depth
    assert slope == pytest.approx(1.0, rel=0.15)
    halfway = (energy[depth // 2] - energy[0]) / (depth // 2)
    assert halfway == pytest.approx(slope, rel=0.2)  # a straight line, not a power


def test_norms_are_over_features_item_by_item() -> None:
    """What stands beside an item in its batch must not change the item's result."""
    for family in FAMILIES:
        for block in ("pre-norm", "post-norm") if family != "resnet" else ():  # which has batch norms
            stack, x = stack_of(block, family)
            torch.testing.assert_close(stack(x)[:1], stack(x[:1]), rtol=1e-9, atol=1e-12)


def test_batch_norm_is_an_option_of_the_convolutions() -> None:
    stack = cast(Stack, build("pre-norm", "conv", family_options={"norm_kind": "batch"}, width=4, depth=1))
    assert isinstance(stack.joins[0].norm, nn.BatchNorm2d)
    assert isinstance(stack.leave, nn.BatchNorm2d)
