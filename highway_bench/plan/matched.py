"""A cell at the width that gives its block the budget of plain."""

from __future__ import annotations

from highway_bench.cell import Cell
from highway_bench.matching import matched_width
from highway_bench.tasks.from_cell import cell_family, cell_spec, positions_of


def matched(cell: Cell) -> Cell:
    """``cell`` at the width at which its layers cost as much (``match``) as plain's at the cell's nominal width."""
    family = cell_family(cell)
    width = matched_width(cell_spec(cell), family, cell.nominal_width, cell.match, positions=positions_of(family, cell))
    return cell.but(width=width)
