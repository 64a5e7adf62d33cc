"""Families by name and by options: attributes, invalid options, and inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from highway_bench.errors import BadInput, UnknownName
from highway_bench.families import Site, families, make_family
from highway_bench.network import build

SHAPES = {"vector": (3, 8), "sequence": (3, 5, 8), "image": (3, 8, 16, 16)}


@pytest.mark.parametrize("name", families.names())
def test_an_example_fits(name: str) -> None:
    family = make_family(name)
    x = family.example(3, 8, seq_len=5, generator=torch.Generator().manual_seed(0))
    again = family.example(3, 8, seq_len=5, generator=torch.Generator().manual_seed(0))
    assert x.shape == SHAPES[family.kind] == SHAPES[families.get(name).kind]
    assert x.shape[family.feature_axis] == 8
    assert torch.equal(x, again)
    assert family.positions(5) == x[0].numel() // 8


@pytest.mark.parametrize("name", families.names())
def test_name_and_options_make_the_same_family_again(name: str) -> None:
    default = make_family(name)
    assert default.options == {}
    for init in type(default).inits:
        family = make_family(name, init=init)
        assert make_family(family.name, **family.options) == family
        assert family.options == ({} if init == "default" else {"init": init})


@pytest.mark.parametrize("name", families.names())
def test_one_sublayer_unless_it_is_a_transformer(name: str) -> None:
    names = [part.name for part in make_family(name).sublayers]
    assert names == (["attention", "mlp"] if name == "transformer" else [name])


def test_a_transformer_hands_its_options_down() -> None:
    attention, mlp = make_family(
        "transformer", heads=2, causal=True, activation="gelu", expansion=2, init="scaled-branch"
    ).sublayers
    assert attention.options == {"heads": 2, "causal": True, "init": "scaled-branch"}
    assert mlp.options == {"activation": "gelu", "expansion": 2, "init": "scaled-branch"}


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("dense", {"kernel": 3}, r"^family 'dense' has no option kernel; it has init, activation$"),
        (
            "dense",
            {"init": "zeros"},
            r"^family 'dense' has no init 'zeros'; it has default, scaled-branch, orthogonal, "
            r"uniform, small$",
        ),
        ("conv", {"kernel": 4}, r"^family 'conv' needs an odd kernel, which preserves the size; not 4$"),
        ("conv", {"kernel": 0}, r"^family 'conv': kernel must be a whole number, 1 or more, not 0$"),
        ("conv", {"kernel": "a"}, r"^family 'conv': kernel must be a whole number, 1 or more, not 'a'$"),
        ("conv-pair", {"norm_kind": "foo"}, r"^family 'conv-pair' has no norm_kind 'foo'; it has layer, batch$"),
        (
            "dense",
            {"activation": "foo"},
            r"^family 'dense' has no activation 'foo'; it has relu, gelu, tanh, sigmoid, id",
        ),
        ("mlp", {"expansion": 0}, r"^family 'mlp': expansion must be a whole number, 1 or more, not 0$"),
        ("attention", {"heads": True}, r"^family 'attention': heads must be a whole number, 1 or more, not True$"),
        ("transformer", {"heads": 2.0}, r"^family 'transformer': heads must be a whole number, 1 or more, not 2.0$"),
        ("transformer", {"causal": "yes"}, r"^family 'transformer': causal is true or false, not 'yes'$"),
        (
            "bilstm",
            {"init": ["default"]},
            r"^family 'bilstm' has no init \['default'\]; it has default, orthogonal, scaled-branch$",
        ),
        (
            "my_layers:make",
            {"heads": 2},
            r"^family 'my_layers:make' takes the options kind, vmap, copy_input, dropout, not heads$",
        ),
    ],
)
def test_options_that_cannot_be(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make_family(name, **options)


@pytest.mark.parametrize("bias", ["x", None, True, float("nan")])
def test_a_gates_bias_is_a_number_or_auto(bias: Any) -> None:
    with pytest.raises(BadInput, match=r"^a gate's bias is a number, auto or published, not "):
        build("highway", "dense", width=4, depth=1, block_options={"gate_bias": bias})


def test_an_unknown_family_lists_near_ones() -> None:
    with pytest.raises(UnknownName, match="unknown family 'transfomer'; did you mean transformer"):
        make_family("transfomer")


@pytest.mark.parametrize(
    ("name", "width", "says"),
    [
        ("bilstm", 7, r"^family 'bilstm' needs a width that 2 divides, not 7$"),
        ("attention", 6, r"^family 'attention' needs a width that 4 divides, not 6$"),
        ("transformer", 10, r"^family 'transformer' needs a width that 4 divides, not 10$"),
        ("dense", 0, r"^width must be at least 1, not 0$"),
        ("conv", -8, r"^width must be at least 1, not -8$"),
    ],
)
def test_widths_that_cannot_be(name: str, width: int, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        build("plain", name, width=width, depth=1)


@pytest.mark.parametrize("name", ["dense", "dense-pair", "mlp", "bilstm", "attention"])
def test_only_images_have_a_stride(name: str) -> None:
    family = make_family(name)
    (part,) = family.sublayers
    if name in ("bilstm", "attention"):
        with pytest.raises(BadInput, match="has no pixels, so its stride is 1, not 2"):
            part.transform(Site(part, 8, stride=2))
    with pytest.raises(BadInput, match="has no pixels, so its stride is 1, not 2"):
        part.carry(Site(part, 8, stride=2))
