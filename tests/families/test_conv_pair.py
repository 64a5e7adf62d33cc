"""What pairs of convolutions may have besides: norms in the branch, a last non-linearity, and gates that are pairs;
and the family with all of these, whose batch norms see batches in training and their running statistics in tests."""

import pytest
import torch
from torch import nn
from torch.nn.functional import conv2d, relu

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.families.conv_pair import ConvPair
from highway_bench.measure.flops import count_flops
from highway_bench.network import build
from highway_bench.plan.plan import Plan
from highway_bench.studies.reproduce.flops import NORMED
from highway_bench.tasks import tasks
from highway_bench.training.evaluation import evaluate
from tests.cells import on_digits, run, scalars

OPTIONS = [
    {"branch_norm": True},
    {"branch_norm": True, "norm_kind": "batch"},
    {"last_activation": "relu"},
    {"gate": "pair"},
    {"branch_norm": True, "norm_kind": "batch", "gate": "pair", "last_activation": "relu", "kernel": 5},
]
# Options → parameters of H and of a gate at width 8
PARAMETERS = [
    (2 * (9 * 64 + 16), 72),
    (2 * (9 * 64 + 16), 72),
    (2 * (9 * 64 + 8), 72),
    (2 * (9 * 64 + 8), 2 * (9 * 64 + 16)),
    (2 * (25 * 64 + 16), 2 * (25 * 64 + 16)),
]
PIXELS = 16 * 16


def one_layer(block, **options):
    stack = build(block, "conv-pair", width=4, depth=1, family_options=options, seed=1).double()
    return stack.joins[0], torch.randn(3, 4, 6, 6, dtype=torch.float64)


@pytest.mark.parametrize(("options", "held"), list(zip(OPTIONS, PARAMETERS, strict=True)))
@pytest.mark.parametrize(("block", "gates"), [("residual", 0), ("highway", 1), ("highway-free", 2)])
def test_the_closed_forms(block, gates, options, held):
    built, spec = make_family("conv-pair", **options), blocks.get(block)
    net = build(block, built, width=8, depth=2)
    assert sum(p.numel() for p in net.parameters()) == 2 * (held[0] + gates * held[1])
    assert spec.stack_parameters(built, 8, 2) == 2 * (held[0] + gates * held[1])
    x = built.example(3, 8)
    assert count_flops(lambda: net(x)) == 3 * 2 * spec.layer_flops(built, 8, PIXELS)


def test_a_branch_with_norms_against_its_equation():
    layer, x = one_layer("plain", branch_norm=True, norm_kind="batch", last_activation="relu")
    first, one, _, second, two, _ = layer.transform
    assert first.bias is second.bias is None
    for norm in (one, two):
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)

    def normed(y, norm):
        mean, var = y.mean((0, 2, 3), keepdim=True), y.var((0, 2, 3), keepdim=True, correction=0)
        return (y - mean) / (var + norm.eps).sqrt() * norm.weight[:, None, None] + norm.bias[:, None, None]

    expected = relu(
        normed(conv2d(relu(normed(conv2d(x, first.weight, padding=1), one)), second.weight, padding=1), two)
    )
    torch.testing.assert_close(layer(x), expected, rtol=1e-10, atol=1e-12)


def test_a_gate_of_two_normed_convolutions():
    """Its bias is the last norm's, and the gates of one join are apart."""
    layer, x = one_layer("highway-free", gate="pair")
    _, t, c = layer.maps(x)
    for index, (value, bias) in enumerate(((t, -1.0), (c, 1.0))):
        first, one, _, second, last = layer.maps.gate.parts[index]
        expected = last(second(relu(one(first(x)))))
        torch.testing.assert_close(value, expected, rtol=0, atol=0)
        assert (last.bias == bias).all()
        assert first.bias is second.bias is None
        torch.testing.assert_close(value.mean(), torch.tensor(bias, dtype=torch.float64), rtol=0, atol=1e-6)


def test_a_scaled_start_is_the_last_norms():
    net = build(
        "residual", "conv-pair", width=4, depth=9, family_options={"branch_norm": True, "init": "scaled-branch"}
    )
    weights = [layer.transform[4].weight for layer in net.joins]
    assert all(torch.allclose(weight, torch.full((4,), 1 / 3)) for weight in weights)


@pytest.mark.parametrize("family", ["conv", "conv-pair"])
def test_a_projection_is_option_b_of_the_residual_paper(family):
    net = build(
        "residual", family, stages=[(1, 2), (2, 5, 2)], change="project", family_options={"norm_kind": "batch"}
    ).eval()
    carry, x = net[1].joins[0].carry, torch.randn(3, 2, 6, 6)
    assert carry[0].bias is None
    torch.testing.assert_close(carry(x), conv2d(x, carry[0].weight, stride=2) / (1 + carry[1].eps) ** 0.5)
    assert isinstance(net[1].joins[1].carry, nn.Identity)
    assert net(x).shape == (3, 5, 3, 3)


def test_a_family_without_pixels_has_no_projection():
    with pytest.raises(BadInput, match="dense"):
        build("residual", "dense", stages=[(1, 2), (1, 5)], change="project")


# -------------------------------------------------------------------------------------------------------------- resnet

TASK = tasks.get("trainability")


def trained(**words):
    return on_digits(family="resnet", width=4, batch_size=32, **{"rate": 0.05, "steps": 4, **words})


def test_norms_of_a_block_are_batch_norms():
    layer = build("pre-norm", "resnet", width=4, depth=1).joins[0]
    assert isinstance(layer.norm, nn.BatchNorm2d)


def test_it_is_conv_pair_with_options():
    options = {**NORMED, "gate": "pair"}
    assert {name: getattr(make_family("resnet"), name) for name in options} == options
    assert isinstance(make_family("resnet"), ConvPair)
    ours, theirs = (
        build("highway", name, width=4, depth=2, family_options=given, seed=1)
        for name, given in (("resnet", {}), ("conv-pair", options))
    )
    x = torch.randn(3, 4, 6, 6)
    assert torch.equal(ours(x), theirs(x))


def test_steps_take_the_statistics_of_their_batch_and_tests_the_running_ones():
    work = TASK.prepare(trained(evaluate="epoch", steps=56))  # an epoch of 44 batches, and more
    seen = []
    norm = next(module for module in work.training.network.modules() if isinstance(module, nn.BatchNorm2d))
    norm.register_forward_hook(lambda module, *_: seen.append(module.training))
    start = norm.running_mean.clone()
    work.training.run()
    assert sum(seen) == 56  # one batch a step; the test after the epoch is in evaluation mode
    assert len(seen) > 56
    assert seen[-1]
    assert not torch.equal(norm.running_mean, start)


def test_a_held_out_loss_does_not_depend_on_the_batches():
    cell = trained()
    work = TASK.prepare(cell)
    work.training.run()
    network, test = work.training.network, work.data.test
    running = [buffer.clone() for buffer in network.buffers()]
    small, large = (evaluate(network, test, "class", batch_size=size) for size in (7, len(test.inputs)))
    assert small.accuracy == large.accuracy
    assert small.loss == pytest.approx(large.loss, rel=1e-5)
    assert all(map(torch.equal, running, network.buffers()))
    found = scalars(run(cell))
    assert found["test_loss"] == pytest.approx(large.loss, rel=1e-5)
    assert found["test_accuracy"] == large.accuracy
    network.train()
    of_batches = network(test.inputs).detach()
    assert float(nn.functional.cross_entropy(of_batches, test.targets)) != pytest.approx(large.loss, rel=1e-3)


def test_a_population_is_refused_before_anything_is_measured(tmp_path):
    with pytest.raises(BadInput, match="together"):
        Plan((trained(together=3),)).run(tmp_path / "store.sqlite")
    TASK.check(trained(together=1))
