"""Sizes by layer against closed forms, and the rule of what vanishes and what explodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from highway_bench.analysis.signal import (
    Departure,
    correlations,
    cosines,
    departure,
    depth_scale,
    profile,
    sizes,
    weights,
)

WIDTH, DEPTH, BATCH = 64, 12, 256


def linear_stack(gain, width=WIDTH, depth=DEPTH):
    """Orthogonal maps times ``gain``, without biases, float64."""
    layers = [nn.Linear(width, width, bias=False).double() for _ in range(depth)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, gain=gain)
    return layers


def profiled(layers, x, cotangent=None):
    v = torch.randn_like(x) if cotangent is None else cotangent
    return profile([[layer] for layer in layers], lambda: (nn.Sequential(*layers)(x) * v).sum(), len(x))


@pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
def test_a_linear_stack_multiplies_sizes_by_its_gain(gain):
    """‖x_l‖ = gᴸ‖x₀‖, and from the top down the same of the gradient; dL/dW_l has rank one an item."""
    x = torch.randn(BATCH, WIDTH, dtype=torch.float64)
    found = profiled([*linear_stack(gain)], x)
    assert len(found.activation) == len(found.gradient) == DEPTH + 1
    for layer in range(DEPTH + 1):
        assert found.activation[layer] == pytest.approx(found.activation[0] * gain**layer, rel=1e-9)
        assert found.gradient[DEPTH - layer] == pytest.approx(found.gradient[DEPTH] * gain**layer, rel=1e-9)
    assert found.correlation == pytest.approx([found.correlation[0]] * (DEPTH + 1), abs=1e-9)


@pytest.mark.parametrize("streams", [(), (2,)])  # a state of the stream itself, and one of two streams
def test_steps_of_padding_do_not_count(streams):
    """Sizes are of an item's own steps, correlations of those that it shares with the next item."""
    x = torch.randn(*streams, 3, 4, 5, dtype=torch.float64)
    lengths = [4, 1, 2]
    real = torch.arange(4) < torch.tensor(lengths).unsqueeze(1)
    layer = nn.Identity()
    found = profile([[layer]], lambda: (layer(x) * x).sum(), 3, real)
    own = torch.cat([x[..., item, :length, :].flatten() for item, length in enumerate(lengths)])
    assert found.activation[0] == pytest.approx(float(own.square().mean().sqrt()))
    assert found.gradient[1] == pytest.approx(found.activation[1])
    cosine = [
        float(cosines(x[..., a, :n, :].flatten(), x[..., b, :n, :].flatten()))
        for a, b, n in ((0, 1, 1), (1, 2, 1), (2, 0, 2))
    ]
    assert found.correlation[0] == pytest.approx(sum(cosine) / 3)


def test_weight_gradients_by_hand():
    """For one linear layer and L = Σ v·Wx: dL/dW = Σ v xᵀ."""
    x, v = torch.randn(2, 5, 3, dtype=torch.float64)
    (layer,) = linear_stack(1.0, width=3, depth=1)
    found = profiled([layer], x, v)
    assert found.weight_gradient == pytest.approx([float((v.T @ x).square().mean().sqrt())])
    assert found.activation[0] == pytest.approx(float(x.square().mean().sqrt()))


class Maps(nn.Module):
    """y = f(x)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def test_a_complex_weight_gradient_has_its_absolute_values():
    factors = nn.Parameter(torch.tensor([[3 + 4j], [0.0]]))
    layer, x = Maps(lambda x: (x * factors.conj()).imag), torch.ones(1, 1)
    layer.factors = factors
    found = profile([[layer]], lambda: (layer(x) * 2.0).sum(), 1)
    assert found.weight_gradient == pytest.approx((2.0,))


def test_correlation_under_relu_follows_the_arc_cosine_map_towards_one():
    """c ↦ (√(1 − c²) + c (π − arccos c)) / π for wide He layers; its fixed point is 1."""
    layers = []
    for _ in range(15):
        layer = nn.Linear(1024, 1024, bias=False)
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        layers.append(nn.Sequential(layer, nn.ReLU()))
    found = profiled(layers, torch.randn(16, 1024)).correlation
    told = [found[0]]
    for _ in layers:
        c = told[-1]
        told.append((math.sqrt(1 - c * c) + c * (math.pi - math.acos(c))) / math.pi)
    assert found == pytest.approx(told, abs=0.05)
    assert found[-1] > 0.9


def test_what_a_layer_changes_in_place_is_seen_as_it_was():
    doubles = [Maps(lambda x: x.mul_(2.0)) for _ in range(2)]
    layers = [nn.Sequential(*linear_stack(1.0, 3, 1)), *doubles]
    found = profiled(layers, torch.randn(4, 3, dtype=torch.float64))
    assert found.activation == pytest.approx([found.activation[0] * times for times in (1, 1, 2, 4)])


def test_states_of_several_tensors():
    """Streams side by side, and the batch on their second axis."""
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    layers = [Maps(lambda streams: 2 * streams) for _ in range(2)]
    found = profile([[layer] for layer in layers], lambda: layers[1](layers[0](x)).sum(), 6)
    assert found.gradient == pytest.approx([4.0, 2.0, 1.0])
    assert found.activation == pytest.approx([size * found.activation[0] for size in (1, 2, 4)])
    assert all(math.isfinite(value) for value in found.correlation)
    assert all(math.isnan(value) for value in found.weight_gradient)
    pair = (x[0], x[1])
    assert sizes([pair]) == pytest.approx(sizes([[torch.cat(pair)]]))


def test_sizes_survive_the_square():
    tiny = torch.full((3,), 1e-200, dtype=torch.float64)
    assert sizes([[tiny], [1 / tiny]]) == pytest.approx((1e-200, 1e200), rel=1e-12)
    assert sizes([[0 * tiny]]) == (0.0,)
    assert cosines(tiny.unsqueeze(0), -tiny.unsqueeze(0)).tolist() == pytest.approx([-1.0])


def test_likeness_by_hand():
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    half = math.sqrt(0.5)
    assert correlations([[x]], 3) == pytest.approx([(0 + half + half) / 3])
    assert math.isnan(correlations([[x[:1]]], 1)[0])
    assert math.isnan(correlations([[x]], 7)[0])


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, 2.0, 99.0, 50.0], Departure()),
        ([1.0, 2.0, 101.0, 1e-9], Departure(explodes=2)),
        ([1.0, 0.02, 0.009, 1e9], Departure(vanishes=2)),
        ([3.0, math.nan], Departure(explodes=1)),
        ([3.0, math.inf], Departure(explodes=1)),
        ([0.0, 1.0], Departure(vanishes=0)),
        ([math.nan, 1.0], Departure(explodes=0)),
    ],
)
def test_departures(values, found):
    assert departure(values) == found


def test_weights_are_matrices_each_once():
    shared = nn.Linear(3, 3)
    assert [id(one) for one in weights([shared, nn.Sequential(shared, nn.LayerNorm(3))])] == [id(shared.weight)]


@pytest.mark.parametrize("scale", [1.5, 5.0, 20.0])
@pytest.mark.parametrize(("start", "rest"), [(0.0, 1.0), (0.9, 0.2)])
def test_an_exponential_gives_its_scale(scale, start, rest):
    layers = np.arange(51)
    curve = rest + (start - rest) * np.exp(-layers / scale)
    assert depth_scale(list(curve)) == pytest.approx(scale, rel=1e-3)
    noisy = curve + 0.01 * np.random.default_rng(0).standard_normal(51)
    assert depth_scale(list(noisy)) == pytest.approx(scale, rel=0.3)


@pytest.mark.parametrize(
    "curve",
    [
        [0.5] * 30,
        list(0.5 + 0.2 * np.random.default_rng(1).standard_normal(40)),
        list(np.linspace(0, 1, 30)),  # a straight line: no scale within its depth
        [0.0, 0.5, 0.75, 1.0],
        [0.0, 0.5, math.nan, 0.8, 0.9, 1.0, 1.0],
    ],
)
def test_none_where_nothing_decays(curve):
    assert depth_scale(curve) is None
