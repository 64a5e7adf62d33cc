"""Families by name and by options: attributes, invalid options, and inputs."""

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.families import families, make_family
from highway_bench.network import build

SHAPES = {"vector": (3, 8), "sequence": (3, 5, 8), "image": (3, 8, 16, 16)}


@pytest.mark.parametrize("name", families.names())
def test_an_example_fits(name):
    family = make_family(name)
    x = family.example(3, 8, seq_len=5, generator=torch.Generator().manual_seed(0))
    again = family.example(3, 8, seq_len=5, generator=torch.Generator().manual_seed(0))
    assert x.shape == SHAPES[family.kind] == SHAPES[families.get(name).kind]
    assert x.shape[family.feature_axis] == 8
    assert torch.equal(x, again)
    assert family.positions(5) == x[0].numel() // 8


@pytest.mark.parametrize("name", families.names())
def test_name_and_options_make_the_same_family_again(name):
    default = make_family(name)
    assert default.options == {}
    for init in type(default).inits:
        family = make_family(name, init=init)
        assert make_family(family.name, **family.options) == family
        assert family.options == ({} if init == "default" else {"init": init})


def test_a_transformer_hands_its_options_down():
    attention, mlp = make_family(
        "transformer", heads=2, causal=True, activation="gelu", expansion=2, init="scaled-branch"
    ).sublayers
    assert attention.options == {"heads": 2, "causal": True, "init": "scaled-branch"}
    assert mlp.options == {"activation": "gelu", "expansion": 2, "init": "scaled-branch"}


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("dense", {"kernel": 3}, "kernel"),
        ("dense", {"init": "zeros"}, "zeros"),
        ("conv", {"kernel": 4}, "odd"),
        ("conv", {"kernel": "a"}, "kernel"),
        ("conv-pair", {"norm_kind": "foo"}, "norm_kind"),
        ("conv-pair", {"gate": "triple"}, "gate"),
        ("conv-pair", {"branch_norm": 1}, "branch_norm"),
        ("conv-pair", {"last_activation": "step"}, "last_activation"),
        ("dense", {"activation": "foo"}, "activation"),
        ("mlp", {"expansion": 0}, "expansion"),
        ("attention", {"heads": True}, "heads"),
        ("transformer", {"causal": "yes"}, "causal"),
        ("bilstm", {"init": ["default"]}, "init"),
        ("my_layers:make", {"heads": 2}, "heads"),
    ],
)
def test_options_that_cannot_be(name, options, says):
    with pytest.raises(BadInput, match=says):
        make_family(name, **options)


@pytest.mark.parametrize(
    ("name", "width", "says"),
    [
        ("bilstm", 7, "2 divides"),
        ("attention", 6, "4 divides"),
        ("transformer", 10, "4 divides"),
        ("dense", 0, "at least 1"),
    ],
)
def test_widths_that_cannot_be(name, width, says):
    with pytest.raises(BadInput, match=says):
        build("plain", name, width=width, depth=1)
