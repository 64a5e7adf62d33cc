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


def silence(branch: nn.Module) -> None:
    """Make H ≡ 0, whatever it is made of."""
    for parameter in branch.parameters():
        parameter.data.zero_()


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


@pytest.mark.parametrize("block", ["residual", "pre-norm"])
def test_a_lesioned_layer_is_as_good_as_absent(block: str) -> None:
    stack, x = stack_of(block, "dense-pair", depth=3)
    silence(stack.joins[1].transform)
    shorter = Stack(stack.enter, [stack.joins[0], stack.joins[2]], stack.leave)
    assert torch.equal(stack(x), shorter(x))


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


@pytest.mark.parametrize(("init", "low", "high"), [("default", 1e8, 1e14), ("scaled-branch", 1.0, 1e2)])
def test_what_fifty_residual_layers_multiply_a_stream_by(init: str, low: float, high: float) -> None:
    """x + relu(Wx) under He init multiplies the stream every layer; a branch divided by √L does not."""
    stack = build("residual", "dense", family_options={"init": init}, width=64, depth=50, seed=4)
    x = torch.randn(64, 64)
    gain = float(stack(x).detach().square().mean().sqrt())
    assert low < gain < high


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
    by_item = cast(Stack, build("pre-norm", "conv", width=4, depth=1)).joins[0].norm
    y = by_item(5 + 3 * torch.randn(2, 4, 6, 6))
    torch.testing.assert_close(y.flatten(1).mean(1), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.flatten(1).std(1, correction=0), torch.ones(2), atol=1e-4, rtol=0)
