"""Selection: one value or several, names or classes; the same options for Python and for the command line."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import highway_bench as hb
from highway_bench.blocks import blocks
from highway_bench.errors import BadInput, UnknownName
from highway_bench.families import make_family
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection


def a_layer(width: int) -> nn.Module:
    return nn.Linear(width, width)


def test_nothing_given_is_nothing_selected() -> None:
    assert Selection.of() == Selection()
    assert Selection.of(None, depth=None, recipe=None) == Selection()


def test_one_or_several() -> None:
    one = Selection.of("memory", block="plain", depth=4)
    assert one == Selection.of(["memory"], block=("plain",), depth=range(4, 5))
    assert one.depth == (4,)


def test_classes_and_factories() -> None:
    chosen = Selection.of(block=[blocks.get("highway").cls, "pl*"], family=[a_layer, make_family("dense")])
    assert chosen.block == ("highway", "pl*")
    names = [family.name for family in chosen.family if not isinstance(family, str)]
    assert names == [f"{__name__}:a_layer", "dense"]


def test_the_static_types_have_every_option() -> None:
    known = list(inspect.signature(hb.run).parameters)
    options = [one.name for one in fields(Selection)][1:]
    start = known.index(options[0])
    assert known[start : start + len(options)] == options
    assert all(f"    {name}: " in str(hb.run.__doc__) for name in options)


def test_arrays_and_mappings() -> None:
    chosen = Selection.of(depth=np.array([2, 3]), width=pd.Series([8]), family={"own": a_layer, "other": a_layer})
    assert (chosen.depth, chosen.width) == ((2, 3), (8,))
    names = [family.name for family in chosen.family if not isinstance(family, str)]
    assert [re.fullmatch(r"__main__:(\w+)-[0-9a-f]{6}", name)[1] for name in names] == ["own", "other"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"widht": 3}, "unknown option 'widht'; did you mean width"),
        ({"depth": [2.5]}, "depth must be a whole number, not 2.5"),
        ({"depth": "deep"}, "depth must be a whole number, not 'deep'"),
        ({"threads": [1]}, "threads must be a whole number, not [1]"),
        ({"match": ["width"]}, "match must be a name, not ['width']"),
        ({"block": 3}, "a block is a name or a class that was registered, and not 3"),
        ({"family": 3}, "a layer is a function from a width to a module, or a name of one, and not 3"),
        ({"family": nn.Linear(3, 3)}, "Linear is given as one module, and every layer needs one of its own: give"),
        (
            {"family": nn.Bilinear},
            "Bilinear needs in2_features and out_features besides the width: give lambda ",
        ),
    ],
)
def test_a_wrong_value_in_one_line(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(message)}[^\n]*$"):
        Selection.of(**words)


@pytest.mark.parametrize("option", [one.name for one in fields(Selection) if one.metadata["minimum"] is not None])
def test_a_value_below_the_minimum(option: str) -> None:
    minimum = Selection.__dataclass_fields__[option].metadata["minimum"]
    words = option.replace("_", " ")
    with pytest.raises(BadInput, match=f"^{words} must be at least {minimum}, not {minimum - 1}$"):
        Selection.of(**{option: minimum - 1})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [one.name for one in fields(Selection) if one.metadata["choices"]])
def test_a_name_that_is_no_choice(option: str) -> None:
    with pytest.raises(UnknownName, match=f"^unknown {option} 'zzz'; known: "):
        Selection.of(**{option: "zzz"})  # type: ignore[arg-type]


def test_an_option_that_is_none() -> None:
    with pytest.raises(UnknownName, match="frobnicate"):
        Selection.of(frobnicate=1)


def test_importing_it_takes_no_torch() -> None:
    code = "import sys, highway_bench.plan.selection, highway_bench.reproduce.request; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def test_images_without_an_axis_for_the_channel_get_one_where_the_families_take_images() -> None:
    x, y = torch.rand(40, 6, 6), torch.arange(40) % 2
    said = {
        family: Plan.of("smoke", Selection.of("trainability", family=family, block="plain", data=(x, y))).remarks
        for family in ("conv", "transformer")
    }
    assert any("images 1 × 6 × 6" in remark for remark in said["conv"])
    assert any("series 6 × 6" in remark for remark in said["transformer"])
