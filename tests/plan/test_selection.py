"""Selection: one value or several, names or classes; the same options for Python and for the command line."""

import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection


def a_layer(width):
    return nn.Linear(width, width)


def test_one_or_several():
    one = Selection.of("memory", block="plain", depth=4)
    assert one == Selection.of(["memory"], block=("plain",), depth=range(4, 5))
    assert one.depth == (4,)


def test_classes_and_factories():
    chosen = Selection.of(block=[blocks.get("highway").cls, "pl*"], family=[a_layer, make_family("dense")])
    assert chosen.block == ("highway", "pl*")
    names = [family.name for family in chosen.family if not isinstance(family, str)]
    assert names == [f"{__name__}:a_layer", "dense"]


def test_arrays_and_mappings():
    chosen = Selection.of(depth=np.array([2, 3]), width=pd.Series([8]), family={"own": a_layer, "other": a_layer})
    assert (chosen.depth, chosen.width) == ((2, 3), (8,))
    names = [family.name for family in chosen.family if not isinstance(family, str)]
    assert [re.fullmatch(r"__main__:(\w+)-[0-9a-f]{6}", name)[1] for name in names] == ["own", "other"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"widht": 3}, "did you mean width"),
        ({"depth": [2.5]}, "2.5"),
        ({"threads": [1]}, "threads"),
        ({"match": ["width"]}, "match"),
        ({"block": 3}, "block"),
        ({"recipe": "steps=30"}, "dictionary"),
        ({"family": 3}, "layer"),
        ({"family": nn.Linear(3, 3)}, "Linear"),
        ({"family": nn.Bilinear}, "in2_features"),
    ],
)
def test_a_wrong_value_in_one_line(words, message):
    with pytest.raises(BadInput, match=f"^[^\n]*{message}[^\n]*$"):
        Selection.of(**words)


@pytest.mark.parametrize("option", [one.name for one in fields(Selection) if one.metadata["minimum"] is not None])
def test_a_value_below_the_minimum(option):
    minimum = Selection.__dataclass_fields__[option].metadata["minimum"]
    words = option.replace("_", " ")
    with pytest.raises(BadInput, match=f"^{words} "):
        Selection.of(**{option: minimum - 1})


def test_images_without_an_axis_for_the_channel_get_one_where_the_families_take_images():
    x, y = torch.rand(40, 6, 6), torch.arange(40) % 2
    said = {
        family: Plan.of("smoke", Selection.of("trainability", family=family, block="plain", data=(x, y))).remarks
        for family in ("conv", "transformer")
    }
    assert any("images 1 × 6 × 6" in remark for remark in said["conv"])
    assert any("series 6 × 6" in remark for remark in said["transformer"])
