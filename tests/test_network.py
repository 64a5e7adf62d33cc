"""Networks: stages and the three ways between them, what ``build`` refuses, and a published shape."""

import pytest
import torch
from torch import nn

from highway_bench.architectures import architectures
from highway_bench.blocks._parts import Copies, SumThen
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.network import Stack, build
from tests.combinations import IMAGES, IN_DENSE, combinations


@pytest.mark.parametrize(("block", "family"), combinations("conv"))
@pytest.mark.parametrize(("change", "widths"), [("plain", (12, 8)), ("pad", (8, 12)), ("subsample", (12, 8))])
def test_stages_of_different_widths(block, family, change, widths):
    made = make_family(family)
    net = build(block, made, stages=[(2, widths[0]), (1, widths[1])], change=change)
    x = made.example(3, widths[0], seq_len=5)
    y = net(x)
    axis = made.feature_axis
    assert y.shape[axis] == widths[1]
    assert y.movedim(axis, -1).shape[:-1] == x.movedim(axis, -1).shape[:-1]
    y.sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize(("block", "family"), combinations("conv", of=IMAGES))
@pytest.mark.parametrize(("change", "widths"), [("plain", (4, 6)), ("pad", (4, 6)), ("subsample", (6, 4))])
def test_a_stride_divides_the_sides(block, family, change, widths):
    """With another width, and with the same."""
    first, other = widths
    net = build(block, family, stages=[(1, first), (2, other, 2), (1, other, 2)], change=change)
    assert net(torch.randn(2, first, 16, 16)).shape == (2, other, 4, 4)
    y = net(torch.randn(2, first, 7, 9))
    assert y.shape == (2, other, 2, 3)
    y.sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_a_plain_layer_between_stages_has_no_connection():
    net = build("highway", "dense", stages=[(2, 6), (3, 10), (1, 10)])
    first, between, second, third = net
    assert [len(part.joins) for part in (first, second, third)] == [2, 3, 1]
    assert sum(p.numel() for p in between.parameters()) == 6 * 10 + 10
    highway = 2 * 2 * (6 * 6 + 6) + 4 * 2 * (10 * 10 + 10)
    assert sum(p.numel() for p in net.parameters()) == highway + 70
    x = torch.randn(2, 6)
    torch.testing.assert_close(between(x), torch.relu(x @ between.weight.T + between.bias))


def carried(net, x):
    return net[1].joins[0].carry(x)


@pytest.mark.parametrize("change", ["plain", "pad", "project"])
def test_pre_norms_final_norm_stands_at_the_networks_end_alone(change):
    net = build("pre-norm", "conv", stages=[(2, 4), (1, 8, 2), (2, 8)], change=change)
    first, second, last = (part.leave for part in net.children() if isinstance(part, Stack))
    assert isinstance(first, nn.Identity)
    assert isinstance(second, nn.Identity)
    assert sum(p.numel() for p in last.parameters()) == 2 * 8


@pytest.mark.parametrize(("change", "states"), [("pad", 1), ("plain", 2)])
def test_a_state_lasts_until_a_plain_layer_or_the_networks_end(change, states):
    """Four streams; only the last sum of them has a norm."""
    net = build("hc-static", "conv", stages=[(2, 4), (2, 6, 2)], change=change)
    assert sum(isinstance(part, Copies) for part in net.modules()) == states
    sums = [part for part in net.modules() if isinstance(part, SumThen)]
    assert [isinstance(part.module, nn.Identity) for part in sums] == [True, False][-states:]


def test_padding_is_option_a_of_the_residual_paper():
    net = build("residual", "conv", stages=[(1, 2), (1, 5, 2)], change="pad")
    x = torch.randn(3, 2, 6, 6)
    y = carried(net, x)
    assert y.shape == (3, 5, 3, 3)
    assert torch.equal(y[:, :2], x[:, :, ::2, ::2])
    assert not y[:, 2:].any()
    net = build("residual", "dense", stages=[(1, 2), (1, 5)], change="pad")
    torch.testing.assert_close(carried(net, torch.tensor([[1.0, 2.0]])), torch.tensor([[1.0, 2.0, 0.0, 0.0, 0.0]]))


def test_sub_sampling_keeps_evenly_spaced_features():
    net = build("residual", "dense", stages=[(1, 6), (1, 3)], change="subsample")
    torch.testing.assert_close(carried(net, torch.arange(6.0)[None]), torch.tensor([[0.0, 2.0, 4.0]]))
    net = build("residual", "attention", stages=[(1, 8), (1, 4)], change="subsample")
    x = torch.randn(2, 5, 8)
    assert torch.equal(carried(net, x), x[..., ::2])
    net = build("residual", "conv", stages=[(1, 4), (1, 2, 2)], change="subsample")
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(carried(net, x), x[:, ::2, ::2, ::2])


def test_the_carried_path_of_a_gated_layer_changes_too():
    """With T shut, a highway layer that changes dimension gives its carried path."""
    net = build("highway", "conv", stages=[(1, 2), (1, 4, 2)], change="pad", block_options={"gate_bias": -100.0})
    x = torch.randn(3, 2, 6, 6)
    join = net[1].joins[0]
    join.maps.product.weight.data[4:] = 0
    torch.testing.assert_close(join(x), join.carry(x))


@pytest.mark.parametrize(
    ("family", "stages", "change", "says"),
    [
        ("dense", [(1, 8), (1, 4)], "pad", "8 features 4"),
        ("dense", [(1, 4), (1, 8)], "subsample", "4 features 8"),
        *((family, [(1, 4), (1, 4, 2)], "pad", "stride") for family in ("dense", "bilstm", "attention")),
        ("dense", [(1, 4), (1, 8)], "stretch", "stretch"),
        ("attention", [(1, 4), (1, 6)], "plain", "4 divides"),
        ("dense", [(1, 4), (0, 4)], "plain", "depth"),
    ],
)
def test_stages_that_cannot_be(family, stages, change, says):
    with pytest.raises(BadInput, match=says) as caught:
        build("residual", family, stages=stages, change=change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"width": 4, "depth": -3}, "depth"),
        ({"width": 4}, "stages"),
        ({"width": 4, "stages": [(1, 4)]}, "not both"),
        (
            {"width": 4, "depth": 1, "family": make_family("dense"), "family_options": {"init": "default"}},
            "options already",
        ),
        ({"width": 4, "depth": 1, "dataset": "minst"}, "did you mean mnist"),
    ],
)
def test_what_build_refuses(arguments, says):
    with pytest.raises(BadInput, match=says):
        build("plain", **arguments)


def test_sites_count_through_all_stages():
    """A gate's automatic bias follows the whole stack's depth, not the stage's."""
    net = build("highway", "dense", stages=[(10, 4), (10, 4)])
    biases = {round(float(join.maps.product.bias[-1].detach()), 4) for part in net for join in part.joins}
    assert biases == {-2.9957}  # -ln 20


@pytest.mark.parametrize("name", IN_DENSE)
def test_a_stack_is_its_stage(name):
    x = torch.randn(2, 4)
    one, other = build(name, "dense", seed=1, width=4, depth=3), build(name, "dense", seed=1, stages=[(3, 4)])
    assert torch.equal(one(x), other(x))


@pytest.mark.parametrize("build_network", [build, architectures.get("last-step").build])
def test_a_seed_changes_no_random_state(build_network):
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]
    first, again = (build_network("highway", make_family("bilstm"), width=4, depth=1, seed=5) for _ in range(2))
    after = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [])]
    assert all(map(torch.equal, after, states))
    assert all(map(torch.equal, first.parameters(), again.parameters()))


def test_a_seed_is_not_set_on_every_gpu(monkeypatch):
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    build("highway", "dense", width=4, depth=1, seed=5)
    assert seeds == []
    torch.manual_seed(torch.initial_seed())  # the call above would be seen
    assert len(seeds) == 1
