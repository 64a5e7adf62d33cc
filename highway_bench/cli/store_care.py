"""``highway-bench results check``, ``salvage`` and ``prune``: the care of a store's file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import print_json
from highway_bench.errors import BadInput, HighwayBenchError
from highway_bench.terminal import printable


class Unsound(HighwayBenchError):
    """A store has a problem."""


def check(store: StorePath = STORE, json: AsJson = False) -> None:
    """Read a whole store and report what is wrong in it.

    Opening a store checks a file of up to 64 MiB, and the ends of a larger one, and names one problem; this reads every
    page and row, and lists all. The exit status is 1 if something is wrong.
    """
    from highway_bench.results import Store

    cells = 0
    with Store(store, read_only=True, checked=False) as opened:
        problems = opened.problems()
        with suppress(BadInput):  # damaged pages, which are among the problems
            cells = opened.count_cells()
    if json:
        print_json({"store": store, "cells": cells, "problems": problems})
    else:
        for problem in problems:
            typer.echo(printable(problem))
    if problems:
        raise Unsound(f"{store} has {len(problems)} problems; highway-bench results salvage writes what is sound")
    if not json:
        typer.echo(f"{store}: {cells:,} cells, nothing is wrong")


def salvage(
    damaged: Annotated[Path, typer.Argument(help="The damaged store; it is only read.")],
    into: Annotated[Path, typer.Argument(help="The store to write; it must not exist.")],
    json: AsJson = False,
) -> None:
    """Write what can be read of a damaged store into a new one.

    Cells of which rows may be missing are left out and listed with --json; the next run measures them again.
    """
    from highway_bench.results import salvage as salvaged_into

    done = salvaged_into(damaged, into)
    if json:
        print_json(
            {
                "store": into,
                "cells": done.cells,
                "rows": done.rows,
                "runs": done.runs,
                "left_out": sorted(done.left_out),
                "lost_rows": done.lost,
                "lost_runs": done.lost_runs,
            }
        )
    else:
        typer.echo(f"read:     {done.cells:,} cells with {done.rows:,} rows, and the records of {done.runs:,} runs")
        typer.echo(f"left out: {len(done.left_out):,} cells next to rows that cannot be read")
        typer.echo(f"lost:     {done.lost:,} numbers of rows and {done.lost_runs:,} of runs; some may have had none")
        typer.echo(f"store:    {into}")


def prune(
    store: StorePath = STORE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be removed.")] = False,
    json: AsJson = False,
) -> None:
    """Remove the rows of a cell's older source where newer ones exist. No report shows them.

    The records of runs stay. The file becomes smaller.
    """
    from highway_bench.frames.rows import newest
    from highway_bench.results import Store

    Store(store, read_only=True).close()  # a missing one must not be created
    with Store(store, read_only=dry_run) as opened:
        frame = opened.frame()
        shown = set(newest(frame, opened.runs())["digest"])
        older = frame[~frame["digest"].isin(shown)]
        cells, rows = older["digest"].nunique(), len(older)
        if not dry_run:
            opened.remove(older["digest"].unique())
    if json:
        print_json({"store": store, "cells": cells, "rows": rows, "removed": not dry_run})
    else:
        done = "would be removed" if dry_run else "removed"
        typer.echo(f"{rows:,} rows of {cells:,} cells that were measured again with newer source: {done} ({store})")
