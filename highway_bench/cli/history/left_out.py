"""Cells that a comparison of commits left out, since a commit lacks them or they failed; and its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared


class ComparisonFailed(HighwayBenchError):
    """A cell failed at one of the commits, or is slower at the second where none may be."""


def report_left_out(every: Sequence[Compared]) -> tuple[list[Compared], list[Compared]]:
    """Print on stderr why each cell was left out; return the cells that were compared, and those."""
    compared, left_out = [one for one in every if not one.reason], [one for one in every if one.reason]
    for one in left_out:
        typer.echo(f"{'failed' if one.failed else 'left out'}: {one.cell}: {one.reason}", err=True)
    return compared, left_out


def left_out_as_json(left_out: Sequence[Compared]) -> list[dict[str, object]]:
    """The cells, each with the reason and whether it failed."""
    return [{**one.cell._asdict(), "reason": one.reason, "failed": one.failed} for one in left_out]


def raise_failed(left_out: Sequence[Compared], slower: Sequence[Compared] = ()) -> None:
    """Raise ``ComparisonFailed`` with the cells that failed and the ``slower`` ones, if there are any."""
    named = {"failed": [one for one in left_out if one.failed], "slower": slower}
    texts = [f"{word}: {'; '.join(str(one.cell) for one in cells)}" for word, cells in named.items() if cells]
    if texts:
        raise ComparisonFailed("; ".join(texts))
