"""The published networks: what they hold and cost, where their layers stand, what they refuse, and their cells."""

import pytest
import torch
from torch import nn

from highway_bench.architectures import architectures
from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.key import modules_of
from highway_bench.families import make_family
from highway_bench.measure.flops import count_flops
from highway_bench.network import Stack
from highway_bench.stem_head import Incompatible
from highway_bench.tasks import Skip
from highway_bench.tasks.architecture_network import cell_network
from tests.cells import cell, on_digits
from tests.combinations import CORE, can_join

NORMED = {"branch_norm": True, "norm_kind": "batch"}
GATED = {**NORMED, "gate": "pair", "last_activation": "relu"}

# Architecture, block, width, depth, family options; parameters and multiply-adds worked out by hand
NETS = {
    "conv highway 16": ("conv-highway", "highway", 16, 8, {}, 38_986, 8_028_576),
    "conv highway 32": ("conv-highway", "highway", 32, 8, {}, 151_690, 31_650_624),
    "CIFAR 20": ("cifar-resnet", "residual", 16, 9, NORMED, 269_722, 40_551_040),
    "CIFAR 32": ("cifar-resnet", "residual", 16, 15, NORMED, 464_154, 68_862_592),
    "CIFAR 44": ("cifar-resnet", "residual", 16, 21, NORMED, 658_586, 97_174_144),
    "CIFAR 56": ("cifar-resnet", "plain", 16, 27, NORMED, 853_018, 125_485_696),
    "CIFAR 110": ("cifar-resnet", "residual", 16, 54, NORMED, 1_727_962, 252_887_680),
    "Highway-110": ("cifar-resnet-b", "highway", 14, 54, GATED, 2_649_918, None),
    "plain-34": ("imagenet-resnet", "plain", 64, 16, NORMED, 21_623_848, 3_644_493_824),
    "ResNet-34 A": ("imagenet-resnet", "residual", 64, 16, NORMED, 21_623_848, 3_644_493_824),
    "ResNet-34 B": ("imagenet-resnet-b", "residual", 64, 16, NORMED, 21_797_672, 3_663_761_408),
    "ResNet-18 A": ("imagenet-resnet", "residual", 64, 8, NORMED, 11_515_688, 1_794_805_760),
    "ResNet-18 B": ("imagenet-resnet-b", "residual", 64, 8, NORMED, 11_689_512, 1_814_073_344),
    "VGG-16": ("vgg", "plain", 64, 9, {}, 138_357_544, 15_470_264_320),
    "lecture 20": ("stemless", "highway", 784, 20, {}, 24_625_450, None),
    "VGG-19": ("vgg", "plain", 64, 12, {}, 143_667_240, 19_632_062_464),
}


def family_of(architecture, options):
    convolutions = "conv" if architecture in ("conv-highway", "vgg") else "conv-pair"
    return make_family("dense" if architecture == "stemless" else convolutions, **options)


@pytest.mark.parametrize("net", NETS)
def test_parameters_and_multiply_adds(net):
    name, block, width, depth, options, parameters, multiply_adds = NETS[net]
    architecture = architectures.get(name)
    with torch.device("meta"), torch.no_grad():
        network = architecture.build(block, family_of(name, options), width=width, depth=depth).eval()
        x = torch.zeros(1, *architecture.inputs)
        assert sum(p.numel() for p in network.parameters()) == parameters
        if multiply_adds is not None:
            assert count_flops(lambda: network(x)) == 2 * multiply_adds


SMALL = {
    "conv-highway": (5, (1, 28, 28)),
    "cifar-resnet": (3, (3, 16, 16)),
    "cifar-resnet-b": (3, (3, 16, 16)),
    "imagenet-resnet": (8, (1, 28, 28)),
    "imagenet-resnet-b": (8, (1, 28, 28)),
    "vgg": (9, (1, 32, 32)),
}
POOLS_OR_PROJECTS = ("conv-highway", "cifar-resnet-b")
"""What no network of ``build`` has between its stages: all blocks fill these."""


@pytest.mark.parametrize(
    ("name", "block"),
    [
        (name, block)
        for name in SMALL
        for block in blocks
        if block in CORE or (name in POOLS_OR_PROJECTS and can_join(block, "conv"))
    ],
)
def test_every_block_fills_every_architecture(name, block):
    depth, inputs = SMALL[name]
    network = architectures.get(name).build(
        block, family_of(name, {}), width=2, depth=depth, inputs=inputs, outputs=7, seed=3
    )
    stacks = [part for part in network.modules() if isinstance(part, Stack)]
    assert sum(len(stack.joins) for stack in stacks) == depth
    y = network(torch.randn(3, *inputs))
    assert y.shape == (3, 7)
    y.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in network.parameters())


def sides(network, inputs):
    """(layers with the block, pixels a side) of each stack, in order."""
    seen = []

    def note(stack, args, y):
        seen.append((len(stack.joins), y.shape[-1]))

    for part in network.modules():
        if isinstance(part, Stack):
            part.register_forward_hook(note)
    network(torch.zeros(2, *inputs))
    return seen


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        (8, [(2, 24), (3, 12), (3, 6)]),
        (18, [(6, 24), (6, 12), (6, 6)]),
        (28, [(9, 24), (9, 12), (10, 6)]),
        (3, [(1, 24), (1, 12), (1, 6)]),
    ],
)
def test_where_the_pools_of_the_highway_network_stand(depth, expected):
    network = architectures.get("conv-highway").build("highway", make_family("conv"), width=2, depth=depth)
    assert sides(network, (1, 28, 28)) == expected
    assert network[-1].in_features == 2 * 3 * 3


def test_where_the_stages_stand():
    resnet = architectures.get("cifar-resnet").build("residual", make_family("conv-pair"), width=2, depth=6)
    assert sides(resnet, (3, 32, 32)) == [(2, 32), (2, 16), (2, 8)]
    vgg = architectures.get("vgg").build("plain", make_family("conv"), width=2, depth=12, inputs=(3, 64, 64))
    assert sides(vgg, (3, 64, 64)) == [(1, 64), (1, 32), (3, 16), (3, 8), (4, 4)]
    wide = architectures.get("imagenet-resnet").build("residual", make_family("conv-pair"), width=2, depth=16)
    assert sides(wide, (3, 64, 64)) == [(3, 16), (4, 8), (6, 4), (3, 2)]


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        (
            "conv-highway",
            {"depth": 2},
            "has .* 3 or more",
        ),
        ("conv-highway", {"inputs": (1, 8, 8)}, "takes .*12 × 12"),
        ("cifar-resnet", {"depth": 10}, "has .*multiple of 3"),
        ("imagenet-resnet", {"depth": 9}, "has 8 or 16"),
        ("vgg", {"depth": 16}, "has 9 or 12"),
        ("vgg", {"inputs": (3, 28, 28), "depth": 9}, "takes .*32 × 32"),
        ("vgg", {"family": "dense", "depth": 9}, "takes .*'dense'"),
    ],
)
def test_what_cannot_be(name, words, says):
    family = make_family(words.pop("family", "conv"))
    with pytest.raises(BadInput, match=f"^the {name} architecture {says}") as caught:
        architectures.get(name).build("plain", family, **{"width": 4, "depth": 8, **words})
    assert isinstance(caught.value, Incompatible) == says.startswith("takes")  # a run skips these cells


def test_the_lectures_network_has_its_inputs_width_and_vectors_alone():
    stemless = architectures.get("stemless")
    network = stemless.build("plain", make_family("dense"), width=784, depth=1, seed=5)
    assert network(torch.randn(2, 1, 28, 28)).shape == (2, 10)
    with pytest.raises(BadInput, match="784"):
        stemless.build("highway", make_family("dense"), width=50, depth=2)
    with pytest.raises(Incompatible, match="'conv'"):
        stemless.build("highway", make_family("conv"), width=784, depth=2)
    with pytest.raises(Incompatible, match="'dense'"):
        stemless.build("highway", make_family("dense"), width=8, depth=2, inputs=(4, 2))


@pytest.mark.parametrize("name", architectures.names())
def test_a_cells_key_has_the_source_of_its_architecture(name):
    assert architectures.module_of(name) in modules_of(on_digits(layout=name))


def test_a_cell_names_its_architecture():
    one = on_digits(dataset="mnist", width=784, layout="stemless")
    assert type(cell_network(one)[0]) is nn.Flatten
    last = cell("trainability", "plain", "bilstm", dataset="adding", seq_len=6, layout="last-step")
    assert cell_network(last)(torch.randn(2, 6, 2)).shape == (2,)
    with pytest.raises(Skip, match="'conv'"):
        cell_network(one.but(family="conv"))
    with pytest.raises(UnknownName, match="architecture"):
        cell_network(one.but(recipe={"layout": "stemles"}))
