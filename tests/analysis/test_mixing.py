"""Depth mixing against closed forms of the connections, and against sums that must hold for any of them."""

import math

import pytest
import torch
from torch import nn

from highway_bench.analysis.mixing import depth_mixing
from highway_bench.families import make_family
from highway_bench.network import build
from tests.combinations import FEW, combinations

WIDTH, DEPTH = 8, 4
NOT_LINEAR = ("gru-gate", "gated-residual")  # a branch is squashed by tanh; what a branch reads is a mean of norms


def stack_of(block, family="dense", **options):
    stack = build(block, family, width=WIDTH, depth=DEPTH, block_options=options, seed=2).double().eval()
    source = torch.Generator().manual_seed(3)
    return stack, make_family(family).example(3, WIDTH, seq_len=5, generator=source).double()


def mixing_of(stack, x):
    return depth_mixing(stack, lambda: stack(x))


def matrix(rows):
    return [value for row in rows for value in row]


@pytest.mark.parametrize("family", ["dense", "conv", "bilstm", "transformer"])
@pytest.mark.parametrize("block", ["pre-norm", "residual", "sandwich-norm", "hc-dynamic", "x0-mix", "dense-average"])
def test_branches_that_are_added_as_they_are_weigh_one(block, family):
    mixing = mixing_of(*stack_of(block, family))
    assert [len(row) for row in mixing.weights] == list(range(1, len(mixing.weights) + 1))
    assert matrix(mixing.weights) == pytest.approx([1.0] * len(matrix(mixing.weights)))


@pytest.mark.parametrize("family", ["dense", "conv", "transformer"])
def test_attention_residuals_begin_as_means(family):
    for row in mixing_of(*stack_of("attn-residual", family)).weights:
        assert row == pytest.approx([1 / len(row)] * len(row))


def test_parallel_branches_do_not_read_each_other():
    rows = mixing_of(*stack_of("parallel", "transformer")).weights
    assert rows[0] == pytest.approx([1])
    assert rows[1] == pytest.approx([1, 0])
    assert rows[3] == pytest.approx([1, 1, 1, 0])


def test_a_highway_network_multiplies_carry_gates():
    stack, x = stack_of("highway")
    gates = [0.1, 0.3, 0.5, 0.7]
    for layer, gate in zip(stack.joins, gates, strict=True):
        weight, bias = (part.data.chunk(2)[1] for part in layer.maps.product.parameters())
        weight.zero_()
        bias.fill_(math.log(gate / (1 - gate)))
    for layer, row in enumerate(mixing_of(stack, x).weights):
        carried = [math.prod(1 - gate for gate in gates[k:layer]) for k in range(layer + 1)]
        assert row == pytest.approx([carried[0], *(gates[k - 1] * carried[k] for k in range(1, layer + 1))])


def test_hyper_connections_multiply_read_mix_and_write():
    stack, x = stack_of("hc-static")
    source = torch.Generator().manual_seed(5)
    for parameter in (part for layer in stack.joins for part in (layer.read, layer.write, layer.mix)):
        parameter.data = torch.randn(parameter.shape, generator=source, dtype=torch.float64)
    for layer, row in enumerate(mixing_of(stack, x).weights):
        for k, weight in enumerate(row):
            streams = torch.ones(4).double() if k == 0 else stack.joins[k - 1].write.data
            for between in stack.joins[k:layer]:
                streams = between.mix.data.view(4, 4).T @ streams
            assert weight == pytest.approx(abs(float(stack.joins[layer].read.data @ streams)))


def test_a_scale_of_the_branch_or_of_what_it_reads_counts():
    assert matrix(mixing_of(*stack_of("rezero")).weights) == [1, 1, 0, 1, 0, 0, 1, 0, 0, 0]
    for layer, row in enumerate(mixing_of(*stack_of("norm-scaled")).weights, start=1):
        assert row == pytest.approx([layer**-0.5] * layer)


def test_a_norm_of_the_stream_divides_all_that_came_before():
    stack, x = stack_of("post-norm")
    branch = stack.joins[0].transform(x).detach()
    deviation = (x + branch).var(-1, correction=0, keepdim=True).add(1e-5).sqrt()
    weights = [float(((part - part.mean(-1, keepdim=True)) / deviation).norm() / part.norm()) for part in (x, branch)]
    assert mixing_of(stack, x).weights[1] == pytest.approx(weights)


@pytest.mark.parametrize(("block", "family"), [one for one in combinations(of=FEW) if one.values[0] not in NOT_LINEAR])
def test_the_shares_of_a_layer_sum_to_one(block, family):
    stack, x = stack_of(block, family)
    source = torch.Generator().manual_seed(4)
    biases = [part.bias for part in stack.modules() if isinstance(part, nn.LayerNorm)]
    for parameter in stack.parameters():
        if not any(parameter is bias for bias in biases):
            parameter.data += 0.1 * torch.randn(parameter.shape, generator=source, dtype=torch.float64)
    for row in mixing_of(stack, x).shares:
        assert sum(row) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("block", ["highway", "post-norm", "gru-gate", "mhc"])
def test_the_network_is_as_before(block):
    stack, x = stack_of(block, "conv")
    before = stack(x)
    mixing = mixing_of(stack, x)
    assert torch.equal(stack(x), before)
    assert all(parameter.grad is None for parameter in stack.parameters())
    assert all("forward" not in vars(part) for part in stack.modules())
    assert all(map(math.isfinite, matrix(mixing.weights)))


@torch.no_grad()
def test_padding_does_not_count():
    stack, x = stack_of("highway", "bilstm")
    real = torch.tensor([[True] * 3 + [False] * 2]).expand(3, 5)
    h, t = stack.joins[0].maps(x)
    expected = (torch.sigmoid(t) * h)[real].norm() / h[real].norm()
    assert depth_mixing(stack, lambda: stack(x), real).weights[1][1] == pytest.approx(float(expected))


def test_a_layer_without_a_known_branch_is_an_error():
    stack, x = stack_of("residual")
    stack.joins[1] = nn.Identity()
    with pytest.raises(ValueError, match="neither transform nor maps"):
        mixing_of(stack, x)
