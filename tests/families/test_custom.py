"""The user's own layer as a family: a three-line factory under every block, and factories that cannot be."""

import pytest
import torch
from torch import nn

from highway_bench.block_check import CHECKS, Subject
from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import family, make_family
from highway_bench.families.parts import count_parameters
from highway_bench.matching import matched_width
from highway_bench.network import build
from tests.combinations import IN_DENSE

THREE_LINES = """from torch import nn
def make_layer(width):
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
"""
OTHERS = """
import torch

def convolution(width):
    return nn.Conv2d(width, width, 3, padding=1)

class Mean(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        batch, steps, width = x.shape
        return self.map(x.mean(1, keepdim=True)).expand(batch, steps, width)

class Makers:
    mean = Mean

def encoder(width):
    return nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)

class Lstm(nn.LSTM):
    def forward(self, x):
        return super().forward(x)[0]

def lstm(width):
    return Lstm(width, width, batch_first=True)

def steps_first(width):
    return Lstm(width, width)

def noisy(width):
    return nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.Dropout(0.5))

def wider(width):
    return nn.Linear(width, width + 1)

def raises(width):
    raise RuntimeError("no layer today")

def nothing(width):
    return None

class Table(nn.Linear):
    def forward(self, x):
        return {"hidden": super().forward(x)}

def table(width):
    return Table(width, width)

number = 3
"""


@pytest.fixture
def layers(module_of):
    return module_of(THREE_LINES + OTHERS)


@pytest.mark.parametrize("block", ["highway-free", "pre-norm"])
def test_three_lines_keep_the_contract(layers, block):
    subject = Subject(blocks.get(block), make_family(f"{layers}:make_layer", vmap=True))
    for check in CHECKS:
        check(subject)


@pytest.mark.parametrize("block", IN_DENSE)
def test_a_network_of_it_trains_on_a_data_set(layers, block):
    for factory, kind in (("make_layer", "vector"), ("convolution", "image"), ("Mean", "sequence")):
        built = make_family(f"{layers}:{factory}")
        assert built.kind == kind
        network = build(block, built, width=8, depth=2, dataset="digits")
        assert count_parameters(network.body) == blocks.get(block).stack_parameters(built, 8, 2)
        outputs = network(torch.rand(3, 1, 8, 8))
        assert outputs.shape == (3, 10)
        outputs.sum().backward()
        assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize(
    ("factory", "kind"),
    [("encoder", "sequence"), ("lstm", "sequence"), ("Makers.mean", "sequence"), ("noisy", "vector")],
)
def test_a_batch_is_not_taken_for_a_sequence(layers, factory, kind):
    assert make_family(f"{layers}:{factory}").kind == kind


def test_the_flops_of_fused_kernels_are_counted(layers):
    lstm, encoder = (make_family(f"{layers}:{factory}").sublayers[0] for factory in ("lstm", "encoder"))
    assert lstm.transform_flops(8, 5) == 2 * 5 * 4 * (64 + 64)
    assert encoder.transform_flops(8, 5) == 5 * (8 * 64 + 2 * 2 * 8 * 16) + 4 * 8 * 5 * 5


def test_the_kind_can_be_told():
    def make(width):
        return nn.Linear(width, width)

    assert family(make).kind == "vector"
    assert family(make, kind="sequence").kind == "sequence"
    assert family(make, kind="sequence").example(2, 8, seq_len=5).shape == (2, 5, 8)
    with pytest.raises(BadInput, match="image"):
        family(make, kind="image")


def test_its_costs_are_those_of_its_module(layers):
    built = make_family(f"{layers}:make_layer")
    highway = blocks.get("highway")
    assert highway.layer_parameters(built, 8) == (8 * 16 + 16 + 16 * 8 + 8) + (64 + 8)
    assert highway.layer_flops(built, 8, 1) == 2 * (2 * 8 * 16) + 2 * 64
    assert make_family(f"{layers}:convolution").sublayers[0].transform_flops(8, 256) == 2 * 9 * 64 * 256
    assert matched_width(highway, built, 64, "params") == 57


def test_one_factory_makes_one_family(layers):
    first, second = make_family(f"{layers}:make_layer"), make_family(f"{layers}:make_layer")
    assert first == second
    assert first.name == f"{layers}:make_layer"
    assert make_family(first.name, **first.options) == first
    told = make_family(first.name, kind="sequence", vmap=True)
    assert (told.kind, told.options["vmap"]) == ("sequence", True)


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        ("wider", r"\(2, 65\)"),
        ("raises", "no layer today"),
        ("nothing", "NoneType"),
        ("table", "dict"),
        ("steps_first", "mixes"),
        ("number", "function"),
        ("absent", "absent"),
        ("Makers.absent", "absent"),
        ("", "has no"),
    ],
)
def test_factories_that_cannot_be(layers, factory, says):
    with pytest.raises(BadInput, match=f"^.*{says}.*$"):
        make_family(f"{layers}:{factory}")


@pytest.mark.parametrize("source", ["raise OSError('disk on fire')", ")"])
def test_a_module_that_cannot_be_imported(tmp_path, monkeypatch, source):
    (tmp_path / "broken_layers.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BadInput, match="broken_layers:make"):
        make_family("broken_layers:make")


def test_it_cannot_change_the_dimension():
    built = family(lambda width: nn.Linear(width, width))
    with pytest.raises(BadInput, match="change 8 into 16"):
        build("residual", built, stages=[(1, 8), (1, 16)])


@pytest.mark.parametrize("block", ["highway", "gru-gate", "hc-dynamic"])
@pytest.mark.parametrize("match", ["params", "flops"])
def test_a_module_with_heads_can_be_matched(layers, block, match):
    """A factory that takes only some widths: four heads divide neither 1 nor most others."""
    built = make_family(f"{layers}:encoder")
    width = matched_width(blocks.get(block), built, 32, match)
    built.check_width(width)
    assert 24 <= width <= 32
