"""Words: one value or several, names or classes."""

from __future__ import annotations

from torch import nn

from highway_bench.blocks import blocks
from highway_bench.families import make_family
from highway_bench.plan.grids import Selection
from highway_bench.plan.selection import selected


def a_layer(width: int) -> nn.Module:
    return nn.Linear(width, width)


def test_nothing_said_is_nothing_selected() -> None:
    assert selected() == Selection(
        **{
            name: []
            for name in (
                "tasks",
                "blocks",
                "families",
                "depths",
                "widths",
                "dtypes",
                "modes",
                "phases",
                "seeds",
                "seq_lens",
            )
        }
    )
    assert selected(None, depth=None, recipe=None) == selected()


def test_one_or_several() -> None:
    one, several = selected("memory", block="plain", depth=4), selected(["memory"], block=("plain",), depth=range(4, 5))
    assert one == several
    assert one.depths == [4]


def test_classes_and_factories() -> None:
    chosen = selected(block=[blocks.get("highway").cls, "pl*"], family=[a_layer, make_family("dense")])
    assert chosen.blocks == ["highway", "pl*"]
    names = [family.name for family in chosen.families if not isinstance(family, str)]
    assert names == [f"{__name__}:a_layer", "dense"]
