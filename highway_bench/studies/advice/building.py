"""Building: how the connections to use are written in the user's own network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from highway_bench.blocks import blocks
from highway_bench.blocks.base import PUBLISHED
from highway_bench.report.format import three
from highway_bench.studies.advice.connections import Connection

if TYPE_CHECKING:
    from highway_bench.studies.advice.answer import Advice


SCALED_BRANCH = "last map ÷ √L"
"""How a block describes its start that divides the last map of H."""
FIXED_FACTOR = "a constant factor on the branch"


def is_fixed_factor(family: str, block: str, text: str) -> bool:
    """Whether a start with this description multiplies the branch by a constant instead of scaling its last map: in a
    family whose maps the package does not initialise, ``bilstm`` or a factory ``module:factory``."""
    return (family == "bilstm" or ":" in family) and (text == SCALED_BRANCH or block == "deepnorm")


def start_about(connection: Connection) -> str:
    """How a connection begins, as its block describes it."""
    return next(start.about for start in blocks.get(connection.block).starts if start.name == connection.start)


def start_in(layer: str, connection: Connection) -> str:
    """How a connection begins in ``layer``. Where the package does not initialise the layer's maps, a start that scales
    some is a factor on each branch."""
    text = start_about(connection)
    factor = re.search("[÷×].*", text)
    if factor is not None and is_fixed_factor(layer, connection.block, text):
        return f"each branch H(x) {factor.group()} ({FIXED_FACTOR})"
    return "the usual weights" if text == PUBLISHED.about else text


def equation_in(layer: str, connection: Connection) -> str:
    """The equation of a connection, without the clause on the maps of H where its start is a factor on each branch."""
    equation = blocks.get(connection.block).equation
    fixed = is_fixed_factor(layer, connection.block, start_about(connection))
    return re.sub(", the maps of H .*", "", equation) if fixed else equation


def building_line(advice: Advice) -> str:
    """How each connection to use is built, with the learning rate that it had; empty where there is none to use."""
    layer = advice.about["layer"]
    parts = [
        f"{one}: {equation_in(layer, one)}; start: {start_in(layer, one)}; learning rate "
        f"{three(advice.result(one).rate)}"
        for one in advice.use
    ]
    return f"How is it built? {'. '.join(parts)}. L = {advice.about['joins']:,} connections." if parts else ""
