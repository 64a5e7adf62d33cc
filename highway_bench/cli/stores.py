"""``highway-bench results``, ``status``, ``report`` and ``serve``: stores, and the pages that show them."""

from __future__ import annotations

import os
import threading
import webbrowser
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import MOST_NAMED, Printed, show, text_table
from highway_bench.errors import BadInput, HighwayBenchError, NothingMeasured

if TYPE_CHECKING:
    import pandas as pd

    from highway_bench.results.run_status import RunStatus
    from highway_bench.results.schema import Row

Filter = list[str] | None


class Unsound(HighwayBenchError):
    """A store has a problem."""


def status(store: StorePath = STORE, json: AsJson = False) -> None:
    """Show the last run into a store: done, failed and why, time left.

    The run may be running, in another terminal, or have been interrupted; it is not disturbed.
    """
    from highway_bench.results.run_status import run_status

    now = run_status(store)
    failures = [{"cell": cell_of(row), "status": row["status"], "message": row["message"]} for row in now.failures]
    data = {**asdict(now), "store": store, "done": now.done, "failed": now.failed, "failures": failures}
    show(data, status_lines(now, failures), as_json=json)


def status_lines(now: RunStatus, failures: list[dict[str, Any]]) -> Iterator[str]:
    """How far the run is, what runs now, and the first of the failures."""
    from highway_bench.execution.progress import counted, time_left

    by_status = ", ".join(f"{count} {name}" for name, count in Counter(now.counts).most_common())
    yield f"run {now.run_id}: {now.state}" + (f" (process {now.process})" if now.state == "running" else "")
    yield f"command: {' '.join(now.command)}"
    yield f"started: {now.started[:19].replace('T', ' ')} UTC, last change {now.updated[:19].replace('T', ' ')} UTC"
    yield f"done:    {now.done} of {counted(now.cells)}" + (f": {by_status}" if by_status else "")
    if now.state != "finished":
        yield f"left:    {time_left(now.left)}"
    if now.state == "interrupted":
        yield "next:    the same command resumes"
    yield from (f"now:     {name}" for name in now.running)
    for one in failures[:MOST_NAMED]:
        yield f"{one['status']}: {one['cell']}" + (f": {one['message']}" if one["message"] else "")
    if len(failures) > MOST_NAMED:
        yield f"and {len(failures) - MOST_NAMED} more failed"


def cell_of(row: Row) -> str:
    """The name of the cell of ``row``; if its columns are no cell's, those that the name begins with."""
    from highway_bench.cell import Cell

    try:
        return str(Cell.of_columns(row))
    except (TypeError, ValueError):
        return " ".join(f"{name} {row[name]}" for name in ("task", "block", "family", "depth", "width"))


def show_rows(
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
    from highway_bench.results import Store, parsed

    words: dict[str, Filter] = {"task": task, "block": block, "family": family, "metric": metric, "status": status}
    filters = {name: value for name, value in words.items() if value}
    with Store(store, read_only=True) as opened:
        runs = opened.runs()
        rows = [] if not json else opened.rows(**filters)
        frame = opened.frame(**filters)
    if frame.empty:
        raise NothingMeasured(f"{store} has no such rows")
    show({"rows": [parsed(row) for row in rows]}, shown(frame, runs), as_json=json)


def shown(frame: pd.DataFrame, runs: Mapping[str, Mapping[str, Any]]) -> Iterator[Printed]:
    """The runs, then the summary of the rows."""
    from highway_bench.frames.results import Results
    from highway_bench.report.console import summary

    heads = ["run", "started", "cells", "machine", "commit", "command"]
    yield text_table("Runs", heads, [run_line(name, run) for name, run in runs.items()])
    yield ""
    yield from summary(Results(frame, runs))


def run_line(name: str, run: Mapping[str, Any]) -> list[object]:
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
        Path, typer.Argument(help="A file: .csv, .jsonl for JSON lines, or .parquet; or a folder of Parquet files.")
    ],
    store: StorePath = STORE,
    json: AsJson = False,
) -> None:
    """Write all rows of a store as CSV, JSON lines or Parquet.

    Parquet files also have the records of the runs: "results import" loads them back, and a run goes on from there. The
    Parquet files in a folder are joined with the store into one, which has the newest result of every cell; the others
    are removed.
    """
    from highway_bench.results import Store, join_into
    from highway_bench.results import export as write

    if os.path.isdir(out):
        Store(store, read_only=True).close()  # a missing store is an error here, not a new store
        with Store(store) as locked:  # of a run that is still going, a part would be committed
            out = join_into(out, locked)
        show({"file": out}, out, as_json=json)
        return
    with Store(store, read_only=True) as opened:
        rows = write(opened, out)
    show({"file": out, "rows": rows}, f"{rows:,} rows: {out}", as_json=json)


def import_files(
    sources: Annotated[list[Path], typer.Argument(help="Stores, exported Parquet files, or folders of such files.")],
    store: StorePath = STORE,
    json: AsJson = False,
) -> None:
    """Load other stores and exported Parquet files into a store, which is created if it does not exist.

    A run into this store does not measure their cells again. Of a cell that is in several places, the newest result is
    stored; a failure never replaces a result.
    """
    from highway_bench.results import import_rows

    taken = import_rows(store, *sources)
    cells = sum(one.changed for one in taken.values())
    lines = [
        f"{source}: {one.added:,} cells added, {one.replaced:,} newer than in {store}, {one.same:,} the same, "
        f"{one.older:,} older and left out"
        for source, one in taken.items()
    ]
    every = [{"source": source, **asdict(one)} for source, one in taken.items()]
    show({"store": store, "cells": cells, "sources": every}, [*lines, f"{cells:,} cells taken: {store}"], as_json=json)


def check(
    store: StorePath = STORE,
    salvage: Annotated[
        Path | None, typer.Option(help="Instead, write what can be read of a damaged store into this new one.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Read a whole store and report what is wrong in it.

    Opening a store checks a file of up to 64 MiB, and the ends of a larger one, and names one problem; this reads every
    page and row, and lists all. The exit status is 1 if something is wrong. With --salvage, cells of which rows may be
    missing are left out and listed with --json; the next run measures them again.
    """
    from highway_bench.results import Store
    from highway_bench.results import salvage as salvaged_into

    if salvage is not None:
        done = salvaged_into(store, salvage)
        lines = [
            f"read:     {done.cells:,} cells with {done.rows:,} rows, and the records of {done.runs:,} runs",
            f"left out: {len(done.left_out):,} cells next to rows that cannot be read",
            f"lost:     {done.lost_rows:,} numbers of rows and {done.lost_runs:,} of runs; some may have had none",
            f"store:    {salvage}",
        ]
        show({"store": salvage, **asdict(done), "left_out": sorted(done.left_out)}, lines, as_json=json)
        return
    cells = 0
    with Store(store, read_only=True, checked=False) as opened:
        problems = opened.problems()
        with suppress(BadInput):  # damaged pages, which are among the problems
            cells = opened.count_cells()
    lines = problems or [f"{store}: {cells:,} cells, nothing is wrong"]
    show({"store": store, "cells": cells, "problems": problems}, lines, as_json=json)
    if problems:
        raise Unsound(f"{store} has {len(problems)} problems; --salvage NEW writes what is sound")


def report(
    store: StorePath = STORE,
    out: Annotated[Path, typer.Option(help="The folder for the page and its figures.")] = Path("reports/page"),
    one_file: Annotated[
        Path | None,
        typer.Option(help="Write the page as this one HTML file instead, which leads to no other file: to mail."),
    ] = None,
    latex: Annotated[
        Path | None, typer.Option(help="Write the tables into this folder instead, as LaTeX with booktabs.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write the page and figures of a store.

    Nothing is measured.
    """
    from highway_bench.frames.results import open_results
    from highway_bench.history.site import link_report
    from highway_bench.pages import HISTORY, index
    from highway_bench.report.latex import write_latex
    from highway_bench.report.page import write_one_file, write_report

    results = open_results(store)
    page: Path | None = None
    figures: tuple[Path, ...] = ()
    tables: list[Path] = []
    if one_file is not None:
        page = write_one_file(results, one_file)
    if latex is not None:
        tables = write_latex(results, latex)
    if one_file is None and latex is None:
        written = write_report(results, out)
        page, figures = written.page, written.figures
        link_report(out.parent / index(HISTORY))
    show({"page": page, "figures": figures, "tables": tables}, [*([page] if page else []), *tables], as_json=json)


def serve(
    reports: Annotated[Path, typer.Option(help="The folder of reports.")] = Path("reports"),
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Serve the report and asv's pages on 127.0.0.1, until Ctrl-C.

    Needs no network. Other machines have no access.
    """
    from highway_bench.history.site import address, pages, server

    with server(reports, port) as serving:
        for line in pages(serving, reports):
            typer.echo(line)
        typer.echo(f"serving {address(serving)} until Ctrl-C")
        if browser:
            # In a thread: a text browser in this console returns only when it is closed, and needs the server before.
            threading.Thread(target=webbrowser.open, args=(address(serving),), daemon=True).start()
        serving.serve_forever()
