"""This year's connections against oracles that are written from their formulas, and their starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.blocks.layerscale import first_scale
from highway_bench.blocks.mhc import sinkhorn
from highway_bench.errors import BadInput, UnknownName
from highway_bench.families import make_family
from highway_bench.network import Stack, build
from tests.combinations import CORE, FEW, MODERN, can_join, families_of

WIDTH, DEPTH = 8, 3
FAMILIES = [*FEW, "conv"]
FEATURES = {"vector": -1, "sequence": -1, "image": 1}


def shaken(block: str, family: str, depth: int = DEPTH, **options: Any) -> tuple[Stack, Tensor]:
    """A stack in double precision whose parameters have all moved away from their start, and an input."""
    stack = cast(Stack, build(block, family, width=WIDTH, depth=depth, block_options=options, seed=2)).double()
    source = torch.Generator().manual_seed(3)
    for parameter in stack.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=source, dtype=torch.float64)
    return stack, make_family(family).example(3, WIDTH, seq_len=5, generator=source).double()


def by_feature(values: Tensor, x: Tensor, family: str) -> Tensor:
    """``values`` (features,) expanded to the shape of x."""
    axis = FEATURES[make_family(family).kind] % x.ndim
    return values.view([-1 if one == axis else 1 for one in range(x.ndim)]).expand_as(x)


def features_last(x: Tensor, family: str) -> Tensor:
    return x.movedim(FEATURES[make_family(family).kind], -1)


def features_back(x: Tensor, family: str) -> Tensor:
    return x.movedim(-1, FEATURES[make_family(family).kind])


def rms(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def rezero(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + join.alpha * join.transform(x)
    return x


def layerscale(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + by_feature(join.scale, x, family) * join.transform(join.norm(x))
    return stack.leave(x)


def branch_scaled(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + join.transform(join.norm(x)) / math.sqrt(len(stack.joins))
    return stack.leave(x)


def branch_scaled_linear(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + join.transform(join.norm(x)) / len(stack.joins)
    return stack.leave(x)


def deepnorm(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = join.norm(len(stack.joins) ** 0.25 * x + join.transform(x))
    return x


def sandwich_norm(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + join.output_norm(join.transform(join.norm(x)))
    return stack.leave(x)


def output_norm(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = x + join.norm(join.transform(x))
    return stack.leave(x)


def norm_scaled(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer = len(stack.joins) // DEPTH
    for index, join in enumerate(stack.joins):
        x = x + join.transform(join.norm(x) / math.sqrt(1 + index // per_layer))
    return stack.leave(x)


def keel(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer = len(stack.joins) // DEPTH
    for index, join in enumerate(stack.joins):
        factor = 1 if index < per_layer else len(stack.joins)
        x = factor * x + join.transform(join.norm(x))
        x = join.output_norm(x) if index else x
    return x


def parallel(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer = len(stack.joins) // DEPTH
    for first in range(0, len(stack.joins), per_layer):
        layer = stack.joins[first : first + per_layer]
        normed = layer[0].norm(x)
        x = x + sum(join.transform(normed) for join in layer)
    return stack.leave.module(x)


def gru_gate(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        u = torch.relu(join.transform(join.norm(x)))
        (w_r, w_z, w_g), (u_r, u_z, u_g) = join.of_branch, join.of_stream
        r = torch.sigmoid(w_r(u) + u_r(x))
        z = torch.sigmoid(w_z(u) + u_z(x) + by_feature(join.update_gate.bias, x, family))
        x = (1 - z) * x + z * torch.tanh(w_g(u) + u_g(r * x))
    return x


def x0_mix(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer, first = len(stack.joins) // DEPTH, x
    for index, join in enumerate(stack.joins):
        x = join.r * x + join.u * first if index % per_layer == 0 else x
        x = x + join.transform(join.norm(x))
    return stack.leave.module(x)


def dense_average(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer, history = len(stack.joins) // DEPTH, [x]
    for index, join in enumerate(stack.joins):
        x = x + join.transform(join.norm(x))
        if (index + 1) % per_layer == 0:
            history.append(x)
            x = torch.tensordot(join.weights, torch.stack(history), 1)
    return stack.leave.module(x)


def laurel_lr(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        a, b = (part.weight.flatten(1) for part in (join.inward, join.outward))
        x = join.transform(join.norm(x)) + x + features_back(features_last(x, family) @ (b @ a).T, family)
    return stack.leave(x)


def hc_dynamic(stack: Stack, x: Tensor, family: str) -> Tensor:
    streams = [x] * 4
    for join in stack.joins:
        made = [
            torch.tanh(rms(features_last(one, family)) * join.rms.gain @ join.weights.weight.flatten(1).T)
            for one in streams
        ]
        read = [join.read[s] + join.read_scale * made[s][..., :1] for s in range(4)]
        write = [join.write[s] + join.write_scale * made[s][..., 1:2] for s in range(4)]
        mix = [join.mix.view(4, 4)[s] + join.read_scale * made[s][..., 2:] for s in range(4)]
        streams = hyper_step(join, streams, read, write, [row.split(1, -1) for row in mix], family)
    return stack.leave.module(sum(streams))


def hc_static(stack: Stack, x: Tensor, family: str) -> Tensor:
    streams = [x] * 4
    for join in stack.joins:
        mix = join.mix.view(4, 4)
        streams = hyper_step(join, streams, join.read, join.write, mix, family)
    return stack.leave.module(sum(streams))


def hyper_step(join: nn.Module, streams: list[Tensor], read: Any, write: Any, mix: Any, family: str) -> list[Tensor]:
    """h = Σ_s read_s x_s; x′_t = Σ_s mix_st x_s + write_t F(h)."""
    last = [features_last(one, family) for one in streams]
    h = features_back(sum(read[s] * last[s] for s in range(4)), family)
    branch = features_last(join.transform(join.norm(h)), family)
    return [features_back(sum(mix[s][t] * last[s] for s in range(4)) + write[t] * branch, family) for t in range(4)]


def mhc(stack: Stack, x: Tensor, family: str, kind: str = "sinkhorn") -> Tensor:
    streams = [x] * 4
    for join in stack.joins:
        u = rms(torch.cat([features_last(one, family) for one in streams], -1))
        scales = torch.repeat_interleave(join.scales, torch.tensor(join.sizes))
        logits = u @ join.maps.weight.flatten(1).T * scales + join.bias
        pre, post = torch.sigmoid(logits[..., :4]) + 1e-6, 2 * torch.sigmoid(logits[..., 4:8])
        if kind == "sinkhorn":
            mix = torch.exp(logits[..., 8:].unflatten(-1, (4, 4)))
            for _ in range(20):
                mix = mix / mix.sum(-2, keepdim=True)
                mix = mix / mix.sum(-1, keepdim=True)
        elif kind == "permutations":
            mix = torch.einsum("...k,kts->...ts", logits[..., 8:].softmax(-1), join.orders)
        else:
            mix = torch.eye(4, dtype=x.dtype).expand(*logits.shape[:-1], 4, 4)
        streams = hyper_step(
            join,
            streams,
            [pre[..., s : s + 1] for s in range(4)],
            [post[..., t : t + 1] for t in range(4)],
            [[mix[..., t, s, None] for t in range(4)] for s in range(4)],
            family,
        )
    u, end = rms(torch.cat([features_last(one, family) for one in streams], -1)), stack.leave
    gates = torch.sigmoid(end.scale * (u @ end.maps.weight.flatten(1).T) + end.bias) + 1e-6
    last = sum(gates[..., s : s + 1] * features_last(streams[s], family) for s in range(4))
    return end.norm(features_back(last, family))


def mhc_lite(stack: Stack, x: Tensor, family: str) -> Tensor:
    return mhc(stack, x, family, "permutations")


def hc_identity(stack: Stack, x: Tensor, family: str) -> Tensor:
    return mhc(stack, x, family, "identity")


def depth_attention(query: Tensor, values: list[Tensor], family: str) -> Tensor:
    last = torch.stack([features_last(one, family) for one in values])
    weights = (rms(last) @ query).softmax(0)
    return features_back((weights.unsqueeze(-1) * last).sum(0), family)


def attn_residual(stack: Stack, x: Tensor, family: str, blocks: int | None = None) -> Tensor:
    values = [x]
    size = 1 if blocks is None else math.ceil(len(stack.joins) / blocks)
    for index, join in enumerate(stack.joins):
        h = depth_attention(join.mean.query, values, family) if index else x
        v = join.transform(join.norm(h))
        values = [*values, v] if index % size == 0 else [*values[:-1], values[-1] + v]
    return stack.leave[1](depth_attention(stack.leave[0].query, values, family))


def attn_residual_block(stack: Stack, x: Tensor, family: str) -> Tensor:
    return attn_residual(stack, x, family, 8)


def residual_relu(stack: Stack, x: Tensor, family: str) -> Tensor:
    for join in stack.joins:
        x = (x + join.transform(x)).clamp(min=0)
    return x


def layer_scalar(stack: Stack, x: Tensor, family: str) -> Tensor:
    per_layer = len(stack.joins) // DEPTH
    for index, join in enumerate(stack.joins, start=1):
        x = x + join.output_norm(join.transform(join.norm(x)))
        x = x * join.scale if index % per_layer == 0 else x
    return stack.leave(x)


def gated_read(read: nn.Module, streams: list[Tensor]) -> tuple[Tensor, Tensor]:
    """u and h, features last."""
    down, up = (part.weight.flatten(1) for part in (read.down, read.up))
    u = torch.cat([rms(x) for x in streams], -1) * (1 + read.gain)
    hidden = u / 4 @ down.T
    gated = torch.sigmoid(hidden * torch.sigmoid(hidden) @ up.T) * u
    return u, sum(gated.split(WIDTH, -1)) / 4


def gated_residual(stack: Stack, x: Tensor, family: str) -> Tensor:
    streams = [features_last(x, family)] * 4
    for join in stack.joins:
        u, h = gated_read(join.read, streams)
        write = 2 * torch.sigmoid(u / 4 @ join.inject.weight.flatten(1).T)
        branch = features_last(join.transform(features_back(h, family)), family)
        streams = [one + write[..., s, None] * branch for s, one in enumerate(streams)]
    return features_back(gated_read(stack.leave.read, streams)[1], family)


def value_residual(stack: Stack, x: Tensor, family: str) -> Tensor:
    first = None
    for join in stack.joins:
        normed, part = join.norm(x), join.transform
        if not hasattr(part, "inward"):
            x = x + part(normed)
            continue
        query, key, value = (normed @ part.inward.weight.T + part.inward.bias).split(WIDTH, -1)
        first = value if first is None else first
        value = (first + value) / 2
        mixed = []
        for q, k, v in zip(*(one.split(WIDTH // part.heads, -1) for one in (query, key, value)), strict=True):
            mixed.append((q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v)
        x = x + part.outward(torch.cat(mixed, -1))
    return stack.leave.module(x)


ORACLES: dict[str, Callable[[Stack, Tensor, str], Tensor]] = {
    oracle.__name__.replace("_", "-"): oracle
    for oracle in (
        rezero, layerscale, branch_scaled, branch_scaled_linear, deepnorm, sandwich_norm, output_norm, norm_scaled,
        keel, parallel, gru_gate, x0_mix, dense_average, laurel_lr, hc_dynamic, hc_static, mhc, mhc_lite,
        hc_identity, attn_residual, attn_residual_block, residual_relu, layer_scalar, gated_residual, value_residual,
    )
}  # fmt: skip


def test_every_modern_block_has_an_oracle() -> None:
    assert set(MODERN) <= ORACLES.keys()


@pytest.mark.parametrize(
    ("block", "family"), [(block, family) for block in ORACLES for family in FAMILIES if can_join(block, family)]
)
def test_each_block_is_its_formula(block: str, family: str) -> None:
    stack, x = shaken(block, family)
    near = 1e-4 if "mhc" in block or block == "hc-identity" else 1e-10  # the code adds small constants in Sinkhorn
    torch.testing.assert_close(stack(x), ORACLES[block](stack, x, family), rtol=near, atol=near)


def test_attention_over_sums_of_branches() -> None:
    """Three sums of two connections each."""
    stack, x = shaken("attn-residual-block", "dense", depth=6, blocks=3)
    torch.testing.assert_close(stack(x), attn_residual(stack, x, "dense", 3))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "block", [name for name in blocks if blocks.get(name).init_state in ("base", "mean") and name != "pre-norm"]
)
def test_a_block_that_starts_as_pre_norm(block: str, family: str) -> None:
    """The blocks take the same parts in the same order, so one seed gives them the same weights of H."""
    x = make_family(family).example(3, WIDTH, seq_len=5).double()
    here, there = (cast(Stack, build(name, family, width=WIDTH, depth=DEPTH, seed=5)) for name in (block, "pre-norm"))
    for mine, other in zip(here.joins, there.joins, strict=True):
        mine.transform.load_state_dict(other.transform.state_dict())
    if block.startswith(("mhc", "hc-identity")):
        for part in here.modules():
            if hasattr(part, "maps"):
                nn.init.zeros_(part.maps.weight)  # the small random part of the start
    near = 2e-3 if block.startswith(("mhc", "hc", "attn")) else 1e-12  # the last norm's ε counts for other sizes
    torch.testing.assert_close(here.double()(x), there.double()(x), rtol=near, atol=near)


@pytest.mark.parametrize("family", FAMILIES)
def test_rezero_starts_as_the_identity(family: str) -> None:
    stack = build("rezero", family, width=WIDTH, depth=DEPTH, seed=1)
    x = make_family(family).example(3, WIDTH, seq_len=5)
    assert torch.equal(stack(x), x)


def test_layerscale_starts_by_its_depth_and_is_pre_norm_at_one() -> None:
    assert [first_scale(depth) for depth in (1, 18, 19, 24, 25)] == [0.1, 0.1, 1e-5, 1e-5, 1e-6]
    here, there = (build(name, "dense", width=WIDTH, depth=DEPTH, seed=5) for name in ("layerscale", "pre-norm"))
    for join in cast(Stack, here).joins:
        nn.init.ones_(join.scale)
    x = torch.randn(3, WIDTH)
    torch.testing.assert_close(here(x), there(x))


def test_the_values_of_one_layer_are_mixed_with_nothing_and_none_are_kept() -> None:
    """A second forward pass, of another batch, begins with its own values."""
    for depth in (1, 2):
        here, there = (
            cast(Stack, build(name, "attention", width=WIDTH, depth=depth, seed=5))
            for name in ("value-residual", "pre-norm")
        )
        x = torch.randn(3, 5, WIDTH)
        assert torch.equal(here(x), there(x)) == (depth == 1)
        expected = here(x[:1])
        here(x)
        torch.testing.assert_close(here(x[:1]), expected, rtol=0, atol=0)
        assert all(join.first == [] for join in here.joins)


def test_a_block_that_needs_attention_is_refused_elsewhere() -> None:
    for family in ("dense", nn_family()):
        with pytest.raises(BadInput, match="value-residual"):
            build("value-residual", family, width=WIDTH, depth=1)


@pytest.mark.parametrize(("layers", "alpha", "beta"), [(6, 1.861, 0.380), (12, 2.213, 0.319), (50, 3.162, 0.224)])
def test_deepnorms_published_constants(layers: int, alpha: float, beta: float) -> None:
    deep, usual = (
        cast(Stack, build(name, "transformer", width=WIDTH, depth=layers, seed=1)) for name in ("deepnorm", "post-norm")
    )
    assert deep.joins[0].alpha == pytest.approx(alpha, abs=1e-3)
    attention, reference = deep.joins[0].transform, usual.joins[0].transform
    for part, scale in (("outward.weight", beta), ("inward.weight", None)):
        ratio = attention.get_parameter(part) / reference.get_parameter(part)
        expected = torch.full_like(ratio, scale or 1.0)
        if scale is None:
            expected[2 * WIDTH :] = beta  # values, and not queries and keys
        torch.testing.assert_close(ratio, expected, rtol=1e-3, atol=1e-3)
    for index in (0, 2):
        ratio = deep.joins[1].transform[index].weight / usual.joins[1].transform[index].weight
        torch.testing.assert_close(ratio, torch.full_like(ratio, beta), rtol=2e-3, atol=1e-3)


def test_mixing_matrices_are_doubly_stochastic() -> None:
    matrix = sinkhorn(torch.randn(4, 4, 5, 7))
    assert float(matrix.detach().min()) >= 0
    for axis in (0, 1):
        torch.testing.assert_close(matrix.sum(axis), torch.ones(4, 5, 7), rtol=1e-3, atol=1e-3)
    lite, _ = shaken("mhc-lite", "dense")
    mixed = lite.joins[0].mix(torch.randn(24, 3, dtype=torch.float64))
    for axis in (0, 1):
        torch.testing.assert_close(mixed.sum(axis), torch.ones(4, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("block", "read", "write", "diagonal", "other"),
    [
        ("mhc", (0.5, 0.5), (1.0, 1.0), 0.25, 0.25),
        ("mhc-onehot", (0.731, 0.5), (1.462, 1.462), 0.475, 0.175),
        ("mhc-diag", (0.731, 0.269), (1.462, 0.538), 0.999, 3.4e-4),
    ],
)
def test_public_starts_of_mhc(
    block: str, read: tuple[float, float], write: tuple[float, float], diagonal: float, other: float
) -> None:
    """The second connection's own stream is stream 1."""
    join = cast(Stack, build(block, "dense", width=WIDTH, depth=2)).joins[1]
    logits = join.bias.detach()
    own, rest = torch.sigmoid(logits[:4])[[1, 0]].tolist()
    assert (own, rest) == pytest.approx(read, abs=1e-3)
    assert (2 * torch.sigmoid(logits[4:8]))[[1, 0]].tolist() == pytest.approx(write, abs=1e-3)
    matrix = sinkhorn(logits[8:].view(4, 4))
    assert (float(matrix[0, 0]), float(matrix[0, 1])) == pytest.approx((diagonal, other), rel=2e-2)


@pytest.mark.parametrize("block", [*CORE, *MODERN])
def test_every_start_can_be_built_and_the_first_is_the_default(block: str) -> None:
    spec = blocks.get(block)
    assert 1 <= len(spec.starts) <= 2
    for family in families_of(block, "conv"):
        default = build(block, family, width=WIDTH, depth=9, seed=3).state_dict()
        for start in spec.starts:
            network = build(block, family, width=WIDTH, depth=9, start=start.name, seed=3)
            begun = network.state_dict()
            fixed = any(type(part).__name__ == "FixedScale" for part in network.modules())
            same = begun.keys() == default.keys() and all(torch.equal(begun[name], default[name]) for name in begun)
            assert same == (start is spec.starts[0]) or fixed


def test_published_gate_biases() -> None:
    def bias(family: str, depth: int, block: str = "highway") -> float:
        stack = cast(Stack, build(block, family, width=4, depth=depth, start="published"))
        return float(stack.joins[0].maps.product.bias[-1].detach())

    assert bias("dense", 50) == -2.0
    assert [bias("conv", depth) for depth in (5, 10, 20, 30)] == [-1.0, -1.0, -2.0, -3.0]
    assert bias("dense", 50, "highway-free") == 2.0


def test_what_is_refused() -> None:
    with pytest.raises(UnknownName, match="rezero"):
        build("rezero", "dense", width=4, depth=1, start="depth-aware")
    with pytest.raises(BadInput, match="orthogonal"):
        build("plain", nn_family(), width=4, depth=1, start="depth-aware")
    for block, options in (
        ("branch-scaled", {"power": "much"}),
        ("output-norm", {"output_gain": True}),
        ("gru-gate", {"gate_bias": "open"}),
        ("x0-mix", {"mix": "all"}),
        ("mhc", {"mixing": "none"}),
        ("attn-residual", {"blocks": -1}),
    ):
        with pytest.raises(BadInput):
            build(block, "dense", width=4, depth=1, block_options=options)


def nn_family() -> Any:
    from highway_bench.families import family

    return family(user_layer)


def user_layer(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())
