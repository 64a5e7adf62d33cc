"""Where a start is a constant factor on the branch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.families import Family, family, make_family
from highway_bench.families.parts import FixedScale
from highway_bench.network import build
from highway_bench.studies.advice.building import is_fixed_factor


def own_layer(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.Tanh())


@pytest.mark.parametrize(
    "layer", [make_family("bilstm"), make_family("dense-pair"), family(own_layer)], ids=["bilstm", "dense-pair", "own"]
)
def test_a_start_is_a_constant_factor_where_a_network_has_one(layer: Family) -> None:
    for spec in map(blocks.get, blocks.names()):
        for start in spec.starts if spec.refusal(layer) is None else ():
            if start.init in layer.inits:
                with torch.device("meta"):
                    network = build(spec.name, layer, width=8, depth=3, start=start.name)
                has_one = any(isinstance(part, FixedScale) for part in network.modules())
                assert is_fixed_factor(layer.name, spec.name, start.about) == has_one, (spec.name, start.name)
