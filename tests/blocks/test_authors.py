"""Connections that are awkward to write, as authors brought them: each meets the contract and has its equation."""

import sys
from pathlib import Path

import pytest
import torch

from highway_bench.block_check import check_block
from highway_bench.blocks import blocks
from highway_bench.network import build
from highway_bench.plugins import load_plugins

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "tests" / "blocks" / "authors").glob("*.py")), ROOT / "examples" / "reversible.py"]
FILES += [ROOT / "examples" / "stochastic_depth.py"]


NAMES = [path.stem.replace("_", "-") for path in FILES]


@pytest.fixture(scope="module", autouse=True)
def authors():
    """The blocks of the files, registered until the last test. A second import would stop older versions' compiler."""
    load_plugins(list(map(str, FILES)))
    yield
    for path, name in zip(FILES, NAMES, strict=True):
        blocks.unregister(name)
        sys.modules.pop(path.stem)


@pytest.mark.parametrize("block", NAMES)
@pytest.mark.parametrize("family", ["dense", "bilstm", "conv-pair", "transformer"])
def test_it_meets_the_contract(block, family):
    assert [one for one in check_block(block, in_families=[family]) if one.problem] == []


def test_inputs_follow_from_outputs():
    net = build("reversible", "conv", width=6, depth=3, seed=0).double()
    x = torch.randn(2, 6, 5, 5, dtype=torch.float64)
    first, second = net(x).chunk(2, 1)
    for join in reversed(net.joins):
        first, second = second - join.transform(first), first
    torch.testing.assert_close(torch.cat((first, second), 1), x)


def test_evaluation_is_the_mean_of_training():
    net = build("stochastic-depth", "dense", width=4, depth=1, seed=0)
    x = torch.randn(1, 4).expand(20_000, 4)
    torch.testing.assert_close(net(x).mean(0), net.eval()(x)[0], rtol=0.05, atol=0.02)


def test_a_shortcut_spans_two_layers():
    net = build("two-layer-shortcut", "dense", width=4, depth=3, seed=0)
    first, second, third = (join.transform for join in net.joins)
    x = torch.randn(5, 4)
    y = x + second(first(x))
    torch.testing.assert_close(net(x), y + third(y))


def test_all_positions_have_one_gate():
    net = build("mean-gate", "attention", width=4, depth=1, seed=0)
    x = torch.randn(2, 5, 4)
    h, t = net.joins[0].maps(x)
    gate = (net(x) - x) / (h - x)
    torch.testing.assert_close(gate, torch.sigmoid(t.mean(1, keepdim=True)).expand(gate.shape), rtol=1e-3, atol=1e-3)
