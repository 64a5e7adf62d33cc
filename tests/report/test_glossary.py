"""Starts in the glossary: only those that occur, and where one is a constant factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.families import Family, family, make_family
from highway_bench.families.parts import FixedScale
from highway_bench.network import build
from highway_bench.report.glossary import glossary, is_fixed_factor
from highway_bench.report.results import Results

Make = dict[str, Callable[..., Any]]
STARTS = "Starts: how weights begin"
ABOUT = {"starts": {"published": "as in its source", "depth-aware": "last map ÷ √L"}}


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


def test_named_starts_are_defined_by_family_and_no_default_is_listed(make: Make) -> None:
    base = make["cell"]("trainability", "pre-norm", "dense", 4, dataset="digits")
    rows = [
        row | {"start": start, "digest": f"{row['digest']}/{start}/{family}", "family": family}
        for family in ("dense", "bilstm")
        for start in ("published", "depth-aware")
        for row in make["training"](base, 0.1, rate=0.1)
    ]
    rows += make["timing"](make["cell"]("throughput", "pre-norm", "dense", 4, phase="train-step"), [1.0, 1.1, 1.0, 1.1])
    results = Results(make["frame"](rows), {"run-1": {"blocks": {"pre-norm": ABOUT}}})
    terms = {term.name: term.meaning for term in glossary(results)[STARTS]}
    assert terms == {
        "pre-norm, published": "as in its source",
        "pre-norm, depth-aware": "last map ÷ √L; in bilstm: a constant factor on the branch",
    }
