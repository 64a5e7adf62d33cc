"""Equal budgets: the width that gives a block the parameters, or the FLOP, a layer that plain has at its own width."""

from __future__ import annotations

import math
from collections.abc import Callable

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Match
from highway_bench.errors import BadInput
from highway_bench.families import Family

TOLERANCE = 0.05  # of the budget: how unequal a comparison may be for the sake of widths that kernels like


def yardstick() -> BlockSpec:
    """The block that others are compared with."""
    return next(spec for spec in map(blocks.get, blocks.names()) if spec.yardstick)


def matched_width(
    spec: BlockSpec, family: Family, nominal: int, match: Match, *, snap: int = 1, positions: int | None = None
) -> int:
    """The width of ``spec``'s layers that costs nearest to plain's at ``nominal``; plain itself keeps ``nominal``.

    ``match`` names the cost: ``params`` a layer, ``flops`` a layer, or ``width`` (the width itself). Widths are
    multiples of what the family needs and of ``snap``, or of its half, quarter, … where ``snap`` is too coarse for
    costs that agree within 5 %. Raises ``BadInput`` where plain cannot have the nominal width.

    >>> matched_width(blocks.get("highway"), make_family("dense"), 71, "params")  # 5,112 and 5,100 parameters
    50
    """
    family.check_width(nominal)
    if match == "width" or spec.yardstick:
        return nominal
    cost = layer_cost(spec, family, match, positions)
    budget = layer_cost(yardstick(), family, match, positions)(nominal)
    width = _nearest(cost, budget, math.lcm(family.width_step, snap))
    while snap > 1 and abs(cost(width) / budget - 1) > TOLERANCE:
        snap //= 2
        width = _nearest(cost, budget, math.lcm(family.width_step, snap))
    return width


def _nearest(cost: Callable[[int], int], budget: int, step: int) -> int:
    """The multiple of ``step`` whose cost is nearest to ``budget``; cost grows with the width."""
    low, high = 1, 1
    while cost(high * step) < budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost(middle * step) < budget else (low, middle)
    return step * min((low, high), key=lambda steps: abs(cost(steps * step) - budget))


def layer_cost(spec: BlockSpec, family: Family, match: Match, positions: int | None = None) -> Callable[[int], int]:
    """What one layer costs, as a function of its width: parameters, or forward FLOP of one item."""
    if match == "params":
        return lambda width: spec.layer_parameters(family, width)
    if match == "flops":
        places = family.positions() if positions is None else positions
        return lambda width: spec.layer_flops(family, width, places)
    raise BadInput(f"a budget is params or flops, not {match!r}")


def mismatch(
    spec: BlockSpec, family: Family, width: int, nominal: int, match: Match, positions: int | None = None
) -> float:
    """How far a layer's cost at ``width`` is from plain's at ``nominal``, relative to plain's; 0 under ``width``."""
    if match == "width":
        return 0.0
    budget = layer_cost(yardstick(), family, match, positions)(nominal)
    return layer_cost(spec, family, match, positions)(width) / budget - 1.0
