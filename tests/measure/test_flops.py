"""FLOP counts against closed forms written out here: a multiply-add is two; operators, by hand for a layer."""

import pytest
import torch
from torch import nn

from highway_bench.asv_api import workload
from highway_bench.families import families
from highway_bench.measure.flops import Operations, count_flops, count_operations, multiply_adds

BATCH, LENGTH, WIDTH, HEADS = 2, 5, 8, 2


def backward_of(module, x):
    out = module(x)
    (out[0] if isinstance(out, tuple) else out).sum().backward()


def test_dense_forward_and_backward():
    layer, x = nn.Linear(8, 16), torch.randn(3, 8)
    assert count_flops(lambda: layer(x)) == 2 * 3 * 8 * 16
    x.requires_grad_()
    assert count_flops(lambda: backward_of(layer, x)) == 3 * 2 * 3 * 8 * 16
    assert multiply_adds(2 * 3 * 8 * 16) == 384


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_forward_is_two_products_fused_or_not(dtype, causal):
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, dtype=dtype) for _ in range(3))
    got = count_flops(lambda: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    assert got == 2 * (2 * BATCH * HEADS * LENGTH * LENGTH * WIDTH)


def test_fused_attention_backward_recomputes_the_scores():
    q, k, v = (torch.randn(BATCH, HEADS, LENGTH, WIDTH, requires_grad=True) for _ in range(3))
    product = 2 * BATCH * HEADS * LENGTH * LENGTH * WIDTH
    got = count_flops(lambda: nn.functional.scaled_dot_product_attention(q, k, v).sum().backward())
    assert got == (2 + 5) * product


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("layers", [1, 2])
def test_lstm(dtype, directions, layers):
    hidden = 4
    lstm = nn.LSTM(WIDTH, hidden, num_layers=layers, bidirectional=directions == 2, batch_first=True, dtype=dtype)
    x = torch.randn(BATCH, LENGTH, WIDTH, dtype=dtype, requires_grad=True)
    inputs = [WIDTH] + [directions * hidden] * (layers - 1)
    forward = sum(2 * BATCH * LENGTH * directions * 4 * hidden * (width + hidden) for width in inputs)
    assert count_flops(lambda: lstm(x)) == forward
    with torch.no_grad():
        assert count_flops(lambda: lstm(x)) == forward
    trained = count_flops(lambda: backward_of(lstm, x))
    if dtype == torch.float32:
        assert trained == 3 * forward
    else:  # unfused: no gradient is asked for the initial state, one product a direction and layer the less
        assert trained == 3 * forward - layers * directions * 2 * BATCH * hidden * 4 * hidden


def test_a_weight_that_is_computed_has_a_gradient_too():
    """The parameter is the input of a module, which torch's own tracker of modules hooks."""
    layer, x = nn.utils.parametrizations.weight_norm(nn.Linear(8, 16)), torch.randn(3, 8)
    products = count_flops(lambda: torch.autograd.grad(layer(x).sum(), list(layer.parameters())))
    assert products == 2 * 2 * 3 * 8 * 16


def test_elementwise_work_is_not_counted():
    x = torch.randn(4, 4)
    assert count_flops(lambda: torch.lerp(x, x.relu(), torch.sigmoid(x))) == 0


def test_a_layer_by_hand():
    """y = relu(Wx + b) of 3 items from 4 to 5 features, in float32.

    ``addmm`` reads b (5), x (12) and the view Wᵀ (20) and writes 15 numbers; ``relu`` reads and writes 15. The
    transposition of W is a view: a call that starts no kernel.
    """
    layer, x = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.zeros(3, 4)
    with torch.no_grad():
        counts = count_operations(lambda: layer(x))
    assert counts == Operations(operator_calls=3, kernel_launches=2, bytes_moved=4 * (5 + 12 + 20 + 15 + 30))


def test_views_and_allocations_start_no_kernel_and_writes_in_place_do():
    x = torch.zeros(2, 3)
    counts = count_operations(lambda: (x.view(6), x.t(), torch.empty(7), x.add_(1.0)))
    assert counts == Operations(operator_calls=4, kernel_launches=1, bytes_moved=2 * 24)


@pytest.mark.parametrize("family", families.names())
def test_a_step_has_the_same_counts_every_time_and_more_for_gates(family):
    counts = []
    for block in ("plain", "highway"):
        work = workload("throughput", block, family, 2, 8, batch_size=2, phase="forward-backward")
        first = count_operations(work.step)
        assert count_operations(work.step) == first
        counts.append(first)
    plain, highway = counts
    assert all(more > fewer for more, fewer in zip(highway, plain, strict=True))
