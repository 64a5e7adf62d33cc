"""``highway-bench results``: show, export, import and merge stores."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import console, print_json, print_table
from highway_bench.errors import NothingMeasured

Filter = list[str] | None


def show(
    store: StorePath = STORE,
    task: Annotated[Filter, typer.Option(help="Only these tasks.")] = None,
    block: Annotated[Filter, typer.Option(help="Only these blocks.")] = None,
    family: Annotated[Filter, typer.Option(help="Only these families.")] = None,
    metric: Annotated[Filter, typer.Option(help="Only these metrics.")] = None,
    status: Annotated[Filter, typer.Option(help="Only rows of these statuses.")] = None,
    json: AsJson = False,
) -> None:
    """Show a store's runs and tables.

    With --json, print its rows.
    """
    from highway_bench.report.console import print_summary
    from highway_bench.results import Store, parsed

    words: dict[str, Filter] = {"task": task, "block": block, "family": family, "metric": metric, "status": status}
    filters = {name: value for name, value in words.items() if value}
    with Store(store, read_only=True) as opened:
        runs = opened.runs()
        rows = [] if not json else opened.rows(**filters)
        frame = opened.frame(**filters)
    if frame.empty:
        raise NothingMeasured(f"{store} has no such rows")
    if json:
        print_json({"rows": [parsed(row) for row in rows]})
        return
    print_table(
        "Runs",
        ["run", "started", "cells", "machine", "commit", "command"],
        [run_line(name, run) for name, run in runs.items()],
        right=["cells"],
    )
    typer.echo()
    print_summary(frame, console(), runs)


def run_line(name: str, run: dict[str, Any]) -> list[object]:
    """A run's cells in the table of runs."""
    machines = ", ".join(sorted(set(run.get("machines", {}).values())))
    return [
        name,
        str(run.get("started", ""))[:16].replace("T", " "),
        run.get("measured", "interrupted"),
        machines,
        str(run.get("commit") or "")[:12],
        " ".join(run.get("command", [])),
    ]


def export(
    out: Annotated[
        Path,
        typer.Argument(help="The file to write: .csv, .jsonl for JSON lines, or .parquet; with --by-run, a folder."),
    ],
    store: StorePath = STORE,
    by_run: Annotated[
        bool,
        typer.Option(
            "--by-run",
            help="Write a Parquet file for each run that has none in the folder. Existing files are never changed, so "
            "the folder can be committed.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Write all rows of a store as CSV, JSON lines or Parquet.

    Parquet files also have the records of the runs: "results import" loads them back, and a run goes on from there.
    """
    from highway_bench.results import Store
    from highway_bench.results import export as write

    if by_run:
        export_by_run(out, store, as_json=json)
        return
    with Store(store, read_only=True) as opened:
        rows = write(opened, out)
    if json:
        print_json({"file": out, "rows": rows})
    else:
        typer.echo(f"{rows:,} rows: {out}")


def export_by_run(folder: Path, store: Path, *, as_json: bool) -> None:
    """Write the files of the runs that have none in ``folder``, and print their number and the size of all."""
    from highway_bench.results import Store, export_runs

    Store(store, read_only=True).close()  # a missing store is an error here, not a new store
    with Store(store) as locked:  # a run that is still going would have an incomplete file for ever
        written = export_runs(locked, folder)
    files = list(folder.glob("*.parquet"))
    if not files:
        raise NothingMeasured(f"{store} has no rows")
    size = sum(path.stat().st_size for path in files)
    if as_json:
        print_json({"folder": folder, "files": written, "bytes": size})
    else:
        typer.echo(f"{len(written)} new files, {len(files)} with {size / 1e6:.1f} MB in all: {folder}")


def import_files(
    sources: Annotated[list[Path], typer.Argument(help="Parquet files that were exported, or folders of them.")],
    store: StorePath = STORE,
    json: AsJson = False,
) -> None:
    """Load exported Parquet files into a store, which is created if it does not exist.

    A run into this store does not measure their cells again. Of a cell that is in several places, the newest result is
    stored; a failure never replaces a result.
    """
    from highway_bench.results import import_rows

    taken = import_rows(store, *sources)
    if json:
        print_json({"store": store, "cells": taken})
    else:
        typer.echo(f"{taken:,} cells taken: {store}")


def compact(
    folder: Annotated[Path, typer.Argument(help="The folder of exported Parquet files.")], json: AsJson = False
) -> None:
    """Join the Parquet files of a folder into one, with the newest result of every cell and all runs."""
    from highway_bench.results import compact as join

    written = join(folder)
    if json:
        print_json({"file": written})
    else:
        typer.echo(written)


def merge(
    into: Annotated[Path, typer.Argument(help="The store to merge into; created if it does not exist.")],
    others: Annotated[list[Path], typer.Argument(help="The stores to take cells and runs from.")],
    json: AsJson = False,
) -> None:
    """Merge the cells of several stores into one.

    Of a cell in several stores, the newest result is stored; a failure never replaces a result.
    """
    from highway_bench.results import merge as merge_stores

    taken = merge_stores(into, *others)
    if json:
        stores = [{"store": other, **asdict(one)} for other, one in zip(others, taken, strict=True)]
        print_json({"store": into, "cells": sum(one.changed for one in taken), "stores": stores})
        return
    for other, one in zip(others, taken, strict=True):
        typer.echo(
            f"{other}: {one.added:,} cells added, {one.replaced:,} newer than in {into}, {one.same:,} the same, "
            f"{one.older:,} older and left out"
        )
    typer.echo(f"{sum(one.changed for one in taken):,} cells taken: {into}")
