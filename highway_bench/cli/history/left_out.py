"""The cells that a comparison of commits left out: those that a commit lacks, and those that failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared


class CellsFailed(HighwayBenchError):
    """A cell failed at one of the commits, so it was not compared."""


def print_left_out(left_out: Sequence[Compared]) -> None:
    """Print a line for each cell to the standard error stream, with the reason."""
    for one in left_out:
        typer.echo(f"{'failed' if one.failed else 'left out'}: {one.cell}: {one.reason}", err=True)


def left_out_as_json(left_out: Sequence[Compared]) -> list[dict[str, object]]:
    """The cells, each with the reason and whether it failed."""
    return [{**one.cell._asdict(), "reason": one.reason, "failed": one.failed} for one in left_out]


def raise_failed(left_out: Sequence[Compared]) -> None:
    """Raise ``CellsFailed`` where a cell failed."""
    if failed := [str(one.cell) for one in left_out if one.failed]:
        raise CellsFailed(f"failed: {'; '.join(failed)}")
