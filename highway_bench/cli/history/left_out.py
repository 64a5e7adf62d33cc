"""Cells that a comparison of commits left out, since a commit lacks them or they failed; and its exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from highway_bench.errors import HighwayBenchError

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared, ValueChange


class ComparisonFailed(HighwayBenchError):
    """A cell failed at one of the commits, or is slower or larger at the second where none may be."""


class Undecided(HighwayBenchError):
    """The machine was too disturbed, or the time too short, to decide."""

    exit_status = 5


def report_left_out(every: Sequence[Compared]) -> tuple[list[Compared], list[Compared]]:
    """Print on stderr why each cell was left out; return the cells that were compared, and those."""
    compared, left_out = [one for one in every if not one.reason], [one for one in every if one.reason]
    for one in left_out:
        typer.echo(f"{'failed' if one.failed else 'left out'}: {one.cell}: {one.reason}", err=True)
    return compared, left_out


def left_out_as_json(left_out: Sequence[Compared]) -> list[dict[str, object]]:
    """The cells, each with the reason and whether it failed."""
    return [{**one.cell._asdict(), "reason": one.reason, "failed": one.failed} for one in left_out]


def raise_failed(
    left_out: Sequence[Compared],
    slower: Sequence[Compared] = (),
    counts: Sequence[ValueChange] = (),
    *,
    strict: bool = False,
) -> None:
    """Raise ``ComparisonFailed`` with the cells that failed, the ``slower`` ones, and if ``strict``, those where a
    count rose; if there are any."""
    failed = [one.cell for one in left_out if one.failed]
    named = {
        "failed": failed + [one.cell for one in counts if isinstance(one.after, str)],
        "slower": [one.cell for one in slower],
        "higher counts": [
            one.cell for one in counts if strict and not isinstance(one.after, str) and one.after > one.before
        ],
    }
    texts = [f"{word}: {'; '.join(dict.fromkeys(map(str, cells)))}" for word, cells in named.items() if cells]
    if texts:
        raise ComparisonFailed("; ".join(texts))
