"""Matching: the width at which a block's layer has as many parameters, or FLOP, as plain's layer."""

from __future__ import annotations

import math
from collections.abc import Callable

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Match
from highway_bench.errors import BadInput
from highway_bench.families import Family

TOLERANCE = 0.05  # relative error of the budget that is accepted for widths at which kernels are fast


def baseline() -> BlockSpec:
    """The block that others are compared with."""
    return next(spec for spec in map(blocks.get, blocks.names()) if spec.baseline)


def matched_width(
    spec: BlockSpec, family: Family, nominal: int, match: Match, *, snap: int = 1, positions: int | None = None
) -> int:
    """The width of ``spec``'s layers whose cost is nearest to plain's at ``nominal``; for plain itself, ``nominal``.

    ``match`` is the cost: ``params`` or ``flops`` per layer, or ``width`` (the width itself). Widths are multiples of
    the block's ``step`` and of ``snap``. Where no multiple of ``snap`` has a cost within 5 % of plain's,
    ``snap`` is halved. Raises ``BadInput`` where plain cannot have the nominal width, or costs nothing.

    >>> matched_width(blocks.get("highway"), make_family("dense"), 71, "params")  # 5,112 and 5,100 parameters
    50
    """
    family.check_width(nominal)
    if match == "width" or spec.baseline:
        return nominal
    cost = layer_cost(spec, family, match, positions)
    budget = plain_cost(family, nominal, match, positions)
    width = _nearest(cost, budget, math.lcm(spec.step(family), snap))
    while snap > 1 and abs(cost(width) / budget - 1) > TOLERANCE:
        snap //= 2
        width = _nearest(cost, budget, math.lcm(spec.step(family), snap))
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
    """The cost of one layer as a function of its width: parameters, or forward FLOP of one item."""
    if match == "params":
        return lambda width: spec.layer_parameters(family, width)
    if match == "flops":
        count = family.positions() if positions is None else positions
        return lambda width: spec.layer_flops(family, width, count)
    raise BadInput(f"a budget is params or flops, not {match!r}")


def plain_cost(family: Family, nominal: int, match: Match, positions: int | None = None) -> int:
    """The cost of one layer of plain at the nominal width; raises ``BadInput`` where there is none to match."""
    cost = layer_cost(baseline(), family, match, positions)(nominal)
    if cost == 0:
        what = "parameters that train" if match == "params" else "matrix products"
        raise BadInput(f"family {family.name!r} has no {what}, so that no {match} can be matched: choose match=width")
    return cost


def mismatch(
    spec: BlockSpec, family: Family, width: int, nominal: int, match: Match, positions: int | None = None
) -> float:
    """A layer's cost at ``width`` relative to plain's at ``nominal``, minus 1; 0 if ``match`` is ``width``."""
    if match == "width":
        return 0.0
    return layer_cost(spec, family, match, positions)(width) / plain_cost(family, nominal, match, positions) - 1.0
