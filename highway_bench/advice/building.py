"""Building: how the connections to use are written in the user's own network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from highway_bench.advice.connections import Connection
from highway_bench.blocks import blocks
from highway_bench.report.format import three
from highway_bench.report.glossary import is_fixed_factor

if TYPE_CHECKING:
    from highway_bench.advice.answer import Advice


def start_about(connection: Connection) -> str:
    """How a connection begins, as its block describes it."""
    return next(start.about for start in blocks.get(connection.block).starts if start.name == connection.start)


def start_in(layer: str, connection: Connection) -> str:
    """How a connection begins in ``layer``: where the package does not initialise its maps, a start that scales the
    last one is a factor on each branch."""
    text = start_about(connection)
    factor = re.search("[÷×].*", text)
    if factor is None or not is_fixed_factor(layer, connection.block, text):
        return text
    return f"each branch H(x) {factor.group()}, a fixed factor"


def building_line(advice: Advice) -> str:
    """How each connection to use is built, with the learning rate that it had; empty where there is none to use."""
    parts = [
        f"{one}: {blocks.get(one.block).equation}; start: {start_in(advice.about['layer'], one)}; "
        f"learning rate {three(advice.result(one).rate)}"
        for one in advice.use
    ]
    return f"How is it built? {'. '.join(parts)}." if parts else ""
