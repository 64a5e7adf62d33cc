"""Every block against an oracle that is written from its formula."""

import math
from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor

from highway_bench.blocks import blocks
from highway_bench.families import make_family
from highway_bench.network import Stack, build
from tests.combinations import CORE, FEW, can_join, families_of

WIDTH, DEPTH = 8, 3
Oracle = Callable[[Stack, Tensor, str], Tensor]


def shaken(block, family, depth=DEPTH, **options):
    """A stack in double precision whose parameters have all moved away from their start, and an input."""
    stack = cast(Stack, build(block, family, width=WIDTH, depth=depth, block_options=options, seed=2)).double()
    source = torch.Generator().manual_seed(3)
    for parameter in stack.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, generator=source, dtype=torch.float64)
    return stack, make_family(family).example(3, WIDTH, seq_len=5, generator=source).double()


def features_last(x, family):
    return x.movedim(make_family(family).feature_axis, -1)


def features_back(x, family):
    return x.movedim(-1, make_family(family).feature_axis)


def by_feature(values, x, family):
    """``values`` (features,) expanded to the shape of x."""
    return features_back(values.expand_as(features_last(x, family)), family)


def rms(x):
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


# ---------------------------------------------------------------------------- blocks whose connections are independent


def gated(join, x):
    h, *gates = join.maps(x)
    return h, *map(torch.sigmoid, gates)


def highway(join, x, joins):
    h, t = gated(join, x)
    return h * t + x * (1 - t)


def highway_free(join, x, joins):
    h, t, c = gated(join, x)
    return h * t + x * c


def shortcut_gate(join, x, joins):
    h, t = gated(join, x)
    return h + (1 - t) * x


CONNECTIONS = {
    "plain": lambda join, x, joins: join.transform(x),
    "highway": highway,
    "highway-free": highway_free,
    "shortcut-gate": shortcut_gate,
    "residual": lambda join, x, joins: x + join.transform(x),
    "residual-relu": lambda join, x, joins: (x + join.transform(x)).clamp(min=0),
    "scaled": lambda join, x, joins: x + join.transform(x),  # with constants of one
    "rezero": lambda join, x, joins: x + join.alpha * join.transform(x),
    "pre-norm": lambda join, x, joins: x + join.transform(join.norm(x)),
    "post-norm": lambda join, x, joins: join.norm(x + join.transform(x)),
    "output-norm": lambda join, x, joins: x + join.norm(join.transform(x)),
    "sandwich-norm": lambda join, x, joins: x + join.output_norm(join.transform(join.norm(x))),
    "branch-scaled": lambda join, x, joins: x + join.transform(join.norm(x)) / math.sqrt(joins),
    "branch-scaled-linear": lambda join, x, joins: x + join.transform(join.norm(x)) / joins,
    "deepnorm": lambda join, x, joins: join.norm(joins**0.25 * x + join.transform(x)),
}


def one_by_one(block):
    def oracle(stack, x, family):
        for join in stack.joins:
            x = CONNECTIONS[block](join, x, len(stack.joins))
        return cast(Tensor, stack.leave(x))

    return oracle


# ----------------------------------------------------------------------------------------------------- all other blocks


def layers(stack):
    """The connections of each layer."""
    joins, size = list(stack.joins), len(stack.joins) // DEPTH
    return [joins[first : first + size] for first in range(0, len(joins), size)]


def layerscale(stack, x, family):
    for join in stack.joins:
        x = x + by_feature(join.scale, x, family) * join.transform(join.norm(x))
    return stack.leave(x)


def norm_scaled(stack, x, family):
    for index, layer in enumerate(layers(stack), start=1):
        for join in layer:
            x = x + join.transform(join.norm(x) / math.sqrt(index))
    return stack.leave(x)


def keel(stack, x, family):
    for index, layer in enumerate(layers(stack)):
        for join in layer:
            first = join is stack.joins[0]
            x = (len(stack.joins) if index else 1) * x + join.transform(join.norm(x))
            x = x if first else join.output_norm(x)
    return stack.leave(x)


def parallel(stack, x, family):
    for layer in layers(stack):
        normed = layer[0].norm(x)
        x = x + sum(join.transform(normed) for join in layer)
    return stack.leave.module(x)


def gru_gate(stack, x, family):
    for join in stack.joins:
        u = torch.relu(join.transform(join.norm(x)))
        (w_r, w_z, w_g), (u_r, u_z, u_g) = join.of_branch, join.of_stream
        r = torch.sigmoid(w_r(u) + u_r(x))
        z = torch.sigmoid(w_z(u) + u_z(x) + by_feature(join.update_gate.bias, x, family))
        x = (1 - z) * x + z * torch.tanh(w_g(u) + u_g(r * x))
    return x


def x0_mix(stack, x, family):
    first = x
    for layer in layers(stack):
        x = layer[0].r * x + layer[0].u * first
        for join in layer:
            x = x + join.transform(join.norm(x))
    return stack.leave.module(x)


def dense_average(stack, x, family):
    history = [x]
    for layer in layers(stack):
        for join in layer:
            x = x + join.transform(join.norm(x))
        history.append(x)
        x = torch.tensordot(layer[-1].weights, torch.stack(history), 1)
    return stack.leave.module(x)


def laurel_lr(stack, x, family):
    for join in stack.joins:
        a, b = (part.weight.flatten(1) for part in (join.inward, join.outward))
        x = join.transform(join.norm(x)) + x + features_back(features_last(x, family) @ (b @ a).T, family)
    return stack.leave(x)


def hc_dynamic(stack, x, family):
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


def hc_static(stack, x, family):
    streams = [x] * 4
    for join in stack.joins:
        mix = join.mix.view(4, 4)
        streams = hyper_step(join, streams, join.read, join.write, mix, family)
    return stack.leave.module(sum(streams))


def hyper_step(join, streams, read, write, mix, family):
    """h = Σ_s read_s x_s; x′_t = Σ_s mix_st x_s + write_t F(h)."""
    last = [features_last(one, family) for one in streams]
    h = features_back(sum(read[s] * last[s] for s in range(4)), family)
    branch = features_last(join.transform(join.norm(h)), family)
    return [features_back(sum(mix[s][t] * last[s] for s in range(4)) + write[t] * branch, family) for t in range(4)]


def mhc(stack, x, family):
    streams = [x] * 4
    for join in stack.joins:
        u = rms(torch.cat([features_last(one, family) for one in streams], -1))
        scales = torch.repeat_interleave(join.scales, torch.tensor(join.sizes))
        logits = u @ join.maps.weight.flatten(1).T * scales + join.bias
        pre, post = torch.sigmoid(logits[..., :4]) + 1e-6, 2 * torch.sigmoid(logits[..., 4:8])
        if join.mixes == "sinkhorn":
            mix = torch.exp(logits[..., 8:].unflatten(-1, (4, 4)))
            for _ in range(20):
                mix = mix / mix.sum(-2, keepdim=True)
                mix = mix / mix.sum(-1, keepdim=True)
        elif join.mixes == "permutations":
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


def depth_attention(query, values, family):
    last = torch.stack([features_last(one, family) for one in values])
    weights = (rms(last) @ query).softmax(0)
    return features_back((weights.unsqueeze(-1) * last).sum(0), family)


def attn_residual(stack, x, family, blocks=None):
    values = [x]
    size = 1 if blocks is None else math.ceil(len(stack.joins) / blocks)
    for index, join in enumerate(stack.joins):
        h = depth_attention(join.mean.query, values, family) if index else x
        v = join.transform(join.norm(h))
        values = [*values, v] if index % size == 0 else [*values[:-1], values[-1] + v]
    return stack.leave[1](depth_attention(stack.leave[0].query, values, family))


def attn_residual_block(stack, x, family):
    return attn_residual(stack, x, family, 8)


def layer_scalar(stack, x, family):
    for layer in layers(stack):
        for join in layer:
            x = x + join.output_norm(join.transform(join.norm(x)))
        x = x * layer[-1].scale
    return stack.leave(x)


def gated_read(read, streams):
    """u and h, features last."""
    down, up = (part.weight.flatten(1) for part in (read.down, read.up))
    u = torch.cat([rms(x) for x in streams], -1) * (1 + read.gain)
    hidden = u / 4 @ down.T
    gated = torch.sigmoid(hidden * torch.sigmoid(hidden) @ up.T) * u
    return u, sum(gated.split(WIDTH, -1)) / 4


def gated_residual(stack, x, family):
    streams = [features_last(x, family)] * 4
    for join in stack.joins:
        u, h = gated_read(join.read, streams)
        write = 2 * torch.sigmoid(u / 4 @ join.inject.weight.flatten(1).T)
        branch = features_last(join.transform(features_back(h, family)), family)
        streams = [one + write[..., s, None] * branch for s, one in enumerate(streams)]
    return features_back(gated_read(stack.leave.read, streams)[1], family)


def value_residual(stack, x, family):
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


STATEFUL = (
    layerscale, norm_scaled, keel, parallel, gru_gate, x0_mix, dense_average, laurel_lr, hc_dynamic, hc_static, mhc,
    attn_residual, attn_residual_block, layer_scalar, gated_residual, value_residual,
)  # fmt: skip
ORACLES = {
    **{block: one_by_one(block) for block in CONNECTIONS},
    **{oracle.__name__.replace("_", "-"): oracle for oracle in STATEFUL},
}


def oracle_of(block):
    """Its own, or that of the block that it has another start, or another mixing, of."""
    return ORACLES.get(block) or ORACLES[blocks.get(block).cls.spec.name]


@pytest.mark.parametrize(
    ("block", "family"),
    [
        (block, family)
        for block in blocks
        for family in (families_of(block) if block in CORE else (*FEW, "conv"))
        if can_join(block, family)
    ],
)
def test_each_block_is_its_formula(block, family):
    stack, x = shaken(block, family)
    near = 1e-4 if oracle_of(block) is mhc else 1e-10  # the code adds small constants in Sinkhorn
    torch.testing.assert_close(stack(x), oracle_of(block)(stack, x, family), rtol=near, atol=near)


def test_attention_over_sums_of_branches():
    """Three sums of two connections each."""
    stack, x = shaken("attn-residual-block", "dense", depth=6, blocks=3)
    torch.testing.assert_close(stack(x), attn_residual(stack, x, "dense", 3))


@pytest.mark.parametrize(("skip", "branch"), [(0.0, 1.0), (0.5, -2.0)])
def test_constants_of_shortcut_and_branch(skip, branch):
    stack, x = shaken("scaled", "transformer", skip=skip, branch=branch)
    y = x
    for join in stack.joins:
        y = skip * y + branch * join.transform(y)
    torch.testing.assert_close(stack(x), y, rtol=1e-12, atol=1e-12)
