"""Stems and heads: which data sets a family can have, what shapes come out, and what padding and order do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from highway_bench.data import Data, DataSet, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import families, make_family
from highway_bench.network import Network, build
from highway_bench.stem_head import ImageRows, Incompatible, PositionCodes, build_head, build_stem

LENGTHS = {"adding": {"length": 12}, "copy": {"length": 6}, "recall": {"length": 16}}
IMAGES = ["digits", "mnist", "mnist-5k"]


@dataclass(frozen=True)
class Sentences(DataSet):
    """Made-up padded sentences with a class each."""

    input_kind = "tokens"
    target_kind = "class"
    input_shape = (7,)
    outputs = 3
    vocabulary = 20
    chance_loss = 1.0

    def load(self, *, seed: int = 0) -> Data:
        raise NotImplementedError


def dataset_called(name):
    return Sentences() if name == "sentences" else make_dataset(name, **LENGTHS.get(name, {}))


def inputs_for(dataset, batch):
    """Inputs of the data set's kind and shape, made up."""
    if dataset.input_kind == "tokens":
        return torch.randint(1, dataset.vocabulary, (batch, *dataset.input_shape))
    return torch.rand(batch, *dataset.input_shape)


@pytest.mark.parametrize("family", families.names())
@pytest.mark.parametrize("name", [*IMAGES, *LENGTHS, "sentences"])
def test_a_pair_answers_or_says_that_it_makes_no_sense(name, family):
    dataset, made = dataset_called(name), make_family(family)
    sensible = made.kind == "sequence" or (dataset.input_kind == "image" and dataset.target_kind != "token")
    if not sensible:
        with pytest.raises(Incompatible) as caught:
            build("plain", made, width=8, depth=1, dataset=dataset)
        assert isinstance(caught.value, BadInput)
        assert family in str(caught.value)
        return
    answers = build("plain", made, width=8, depth=1, dataset=dataset)(inputs_for(dataset, 3))
    expected = {"class": (3, dataset.outputs), "scalar": (3,), "token": (3, *dataset.input_shape, dataset.outputs)}
    assert answers.shape == expected[dataset.target_kind]


def test_rows_of_an_image_are_its_steps():
    x = torch.arange(2 * 2 * 3 * 4).reshape(2, 2, 3, 4)  # two channels of three rows
    rows = ImageRows()(x)
    assert rows.shape == (2, 3, 8)
    assert rows[0, 1].tolist() == [4, 5, 6, 7, 16, 17, 18, 19]


def test_position_codes_are_the_papers():
    codes = PositionCodes(6, 4)(torch.zeros(1, 6, 4))[0]
    for step, code in enumerate(codes):
        expected = [way(step / size) for size in (1, 100) for way in (math.sin, math.cos)]
        torch.testing.assert_close(code, torch.tensor(expected))
    assert not list(PositionCodes(6, 4).parameters())
    assert PositionCodes(6, 5)(torch.zeros(2, 4, 5)).shape == (2, 4, 5)  # an odd width, and fewer steps


def test_a_family_that_sees_no_order_gets_it_from_the_codes():
    dataset = make_dataset("adding", length=12)
    x = torch.rand(2, 12, 2)
    turned = x.flip(1)
    for family in ("attention", "transformer"):
        net = build("residual", family, width=8, depth=1, dataset=dataset, seed=1)
        assert not torch.allclose(net(x), net(turned), atol=1e-4)
        blind = Network(net.stem[0], net.body, net.head, pool_steps=True, padded=False)
        torch.testing.assert_close(blind(x), blind(turned), atol=1e-5, rtol=1e-4)


def test_padding_is_left_out_of_the_mean():
    """Without mixing between steps, padding a sequence must not change its answer."""
    stem, head = nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 2)
    net = Network(stem, nn.Linear(4, 4), head, pool_steps=True, padded=True)
    short = torch.tensor([[3, 5, 7]])
    padded = torch.tensor([[3, 5, 7, 0, 0]])
    torch.testing.assert_close(net(short), net(padded))
    assert torch.isfinite(net(torch.zeros(1, 4, dtype=torch.int64))).all()  # nothing but padding


def test_ends_start_by_their_fans():
    mnist, family = make_dataset("mnist-5k"), make_family("dense")
    layer, answer = build_stem(mnist, family, 64)[1], build_head(mnist, family, 640)[0]
    assert float(layer.weight.detach().std()) == pytest.approx((2 / 784) ** 0.5, rel=0.05)
    assert float(answer.weight.detach().std()) == pytest.approx((2 / 650) ** 0.5, rel=0.05)
    assert not layer.bias.any()


def test_the_stem_and_head_do_not_hang_on_the_block():
    """One seed gives every block the same stem, so that a comparison starts from the same features."""
    first, second = (
        build(block, "dense", width=8, depth=2, dataset="digits", seed=4).stem for block in ("plain", "highway-free")
    )
    assert all(map(torch.equal, first.parameters(), second.parameters()))
