"""Jacobians of functions whose singular values are known."""

import math

import pytest
import torch
from torch import nn

from highway_bench.analysis.conditioning import gains, jacobian, line_gradients, neighbour_correlation, spectrum

WIDTH = 24


def source():
    return torch.Generator().manual_seed(3)


def orthogonal(gain, depth):
    layers = [nn.Linear(WIDTH, WIDTH).double() for _ in range(depth)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight, gain=gain)
    return nn.Sequential(*layers)


@pytest.mark.parametrize("gain", [1.0, 0.9])
def test_an_orthogonal_linear_stack_stretches_all_directions_alike(gain):
    stack, x = orthogonal(gain, 30), torch.randn(8, WIDTH, dtype=torch.float64)
    found = spectrum(jacobian(stack, x[:1]))
    assert (found.largest, found.smallest) == pytest.approx((gain**30,) * 2, rel=1e-9)
    assert found.spread == pytest.approx(0.0, abs=1e-9)
    assert found.rank == WIDTH
    assert gains(stack, x, source()) == pytest.approx([gain**60] * 8, rel=1e-9)
    gradients = line_gradients(stack, x[0], x[1], 9, source())
    assert gradients.shape == (9, WIDTH)
    assert neighbour_correlation(gradients) == pytest.approx(1.0)


def test_rows_are_outputs_as_torch_has_them():
    weight = torch.randn(6, 6, dtype=torch.float64)

    def function(x):
        return torch.tanh(x.flatten(1) @ weight).view_as(x)

    x = torch.randn(1, 2, 3, dtype=torch.float64)
    told = torch.autograd.functional.jacobian(function, x).reshape(6, 6)
    assert torch.allclose(jacobian(function, x), told)


def test_products_have_the_mean_of_the_squares():
    matrix = torch.randn(WIDTH, WIDTH, dtype=torch.float64)
    found = spectrum(jacobian(lambda x: x @ matrix, torch.zeros(1, WIDTH, dtype=torch.float64)))
    assert found.mean_square == pytest.approx(float(matrix.square().sum()) / WIDTH)
    many = gains(lambda x: x @ matrix, torch.zeros(4000, WIDTH, dtype=torch.float64), source())
    assert sum(many) / len(many) == pytest.approx(found.mean_square, rel=0.05)


def test_a_singular_matrix_has_a_rank_and_no_spread():
    matrix = torch.diag(torch.tensor([1.0, 1e-3, 0.0], dtype=torch.float64))
    found = spectrum(matrix)
    assert (found.rank, found.spread) == (2, None)
    assert spectrum(matrix[:2, :2]).spread == pytest.approx(3.0)
    assert spectrum(matrix / 0.0) is None


def test_gradients_along_a_kinked_line_shatter():
    """A gradient that turns at every step, and one that is not there at all."""
    turning = torch.eye(4)
    assert neighbour_correlation(turning) == pytest.approx(0.0)
    assert neighbour_correlation(torch.tensor([[1e-200, 0.0], [1e-180, 0.0]], dtype=torch.float64)) == pytest.approx(1)
    assert math.isnan(neighbour_correlation(torch.zeros(3, 4)))
