"""Networks of series: a layer through time, an answer at the last step, and what they refuse."""

import pytest
import torch

from highway_bench.architectures import architectures
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.families.parts import count_parameters
from highway_bench.stem_head import Incompatible

LAST_STEP, THROUGH_TIME = architectures.get("last-step"), architectures.get("through-time")
STEPS, WIDTH = 5, 8
TANH = make_family("dense", activation="tanh")


def network(block, steps=STEPS):
    return THROUGH_TIME.build(block, TANH, width=WIDTH, depth=steps, inputs=(steps, 2), seed=1)


@pytest.mark.parametrize("block", ["plain", "residual", "highway"])
def test_the_recurrence(block):
    built = network(block)
    x = torch.randn(3, STEPS, 2)
    layer, head = built[0].layer, built[1]
    h = torch.zeros(3, WIDTH - 2)
    weight, bias = sorted(layer.parameters(), key=lambda one: one.ndim, reverse=True)  # of its one product
    for step in range(STEPS):
        z = torch.cat((h, x[:, step]), dim=1)
        product = torch.nn.functional.linear(z, weight, bias)
        g, t = product[:, :WIDTH].tanh(), product[:, WIDTH:].sigmoid()
        y = {"plain": g, "residual": z + g, "highway": g * t + z * (1 - t) if block == "highway" else g}
        h = y[block][:, : WIDTH - 2]
    torch.testing.assert_close(built(x), head(h).squeeze(1))


def test_one_set_of_weights_and_every_step_counts():
    short, long = network("plain", 5), network("plain", 9)
    assert count_parameters(short) == count_parameters(long) == WIDTH * WIDTH + WIDTH + (WIDTH - 2) + 1
    x = torch.randn(2, 9, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(long(x).sum(), x)
    assert gradient.abs().amin(-1).gt(0).all()


def test_the_gates_bias_is_that_of_a_network_as_deep_as_the_series_is_long():
    built = network("highway", 20)
    bias = dict(built[0].layer.named_parameters())["maps.product.bias"][WIDTH:]
    torch.testing.assert_close(bias, torch.full((WIDTH,), -torch.tensor(20.0).log().item()))


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_one_answer_an_item_and_every_step_seen(family):
    network = LAST_STEP.build("highway", make_family(family), width=8, depth=2, inputs=(7, 2), seed=1)
    x = torch.randn(3, 7, 2, requires_grad=True)
    answers = network(x)
    assert answers.shape == (3,)
    (gradient,) = torch.autograd.grad(answers.sum(), x)
    assert gradient.abs().amin(-1).gt(0).all()


def test_the_backward_direction_has_seen_the_last_step_alone():
    network = LAST_STEP.build("plain", make_family("bilstm"), width=8, depth=1, inputs=(7, 2), seed=1)
    backward = network[1].joins[0](network[0](x := torch.randn(3, 7, 2, requires_grad=True)))[:, -1, 4:]
    (gradient,) = torch.autograd.grad(backward.sum(), x)
    assert gradient[:, -1].any()
    assert not gradient[:, :-1].any()


def test_parameters_and_several_outputs():
    network = LAST_STEP.build("plain", make_family("bilstm"), width=8, depth=2, inputs=(7, 3), outputs=4, seed=1)
    assert count_parameters(network) == (3 * 8 + 8) + 2 * 2 * 4 * (4 * 8 + 4 * 4 + 2 * 4) + (8 * 4 + 4)
    assert network(torch.randn(2, 7, 3)).shape == (2, 4)


@pytest.mark.parametrize(
    ("name", "block", "family", "width", "depth", "error", "says"),
    [
        ("last-step", "plain", "dense", 8, 2, Incompatible, "dense"),
        ("last-step", "plain", "bilstm", 8, 0, BadInput, "depth"),
        ("through-time", "plain", "bilstm", 8, 5, Incompatible, "bilstm"),
        ("through-time", "mhc", TANH, 8, 5, Incompatible, "stream"),
        ("through-time", "plain", TANH, 8, 4, BadInput, "5 layers"),
        ("through-time", "plain", TANH, 2, 5, BadInput, "state"),
    ],
)
def test_what_they_refuse(name, block, family, width, depth, error, says):
    made = make_family(family) if isinstance(family, str) else family
    with pytest.raises(error, match=says):
        architectures.get(name).build(block, made, width=width, depth=depth, inputs=(5, 2))
