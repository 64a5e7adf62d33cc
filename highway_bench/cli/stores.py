"""``highway-bench results``, ``status``, ``report`` and ``serve``: stores, and the pages that show them."""

from __future__ import annotations

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
    show({"file": out, "rows": rows}, f"{rows:,} rows: {out}", as_json=json)


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
    text = f"{len(written)} new files, {len(files)} with {size / 1e6:.1f} MB in all: {folder}"
    show({"folder": folder, "files": written, "bytes": size}, text, as_json=as_json)


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
    show({"store": store, "cells": taken}, f"{taken:,} cells taken: {store}", as_json=json)


def compact(
    folder: Annotated[Path, typer.Argument(help="The folder of exported Parquet files.")], json: AsJson = False
) -> None:
    """Join the Parquet files of a folder into one, with the newest result of every cell and all runs."""
    from highway_bench.results import compact as join

    written = join(folder)
    show({"file": written}, written, as_json=json)


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
    cells, pairs = sum(one.changed for one in taken), list(zip(others, taken, strict=True))
    lines = [
        f"{other}: {one.added:,} cells added, {one.replaced:,} newer than in {into}, {one.same:,} the same, "
        f"{one.older:,} older and left out"
        for other, one in pairs
    ]
    stores = [{"store": other, **asdict(one)} for other, one in pairs]
    show({"store": into, "cells": cells, "stores": stores}, [*lines, f"{cells:,} cells taken: {into}"], as_json=json)


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
    lines = problems or [f"{store}: {cells:,} cells, nothing is wrong"]
    show({"store": store, "cells": cells, "problems": problems}, lines, as_json=json)
    if problems:
        raise Unsound(f"{store} has {len(problems)} problems; highway-bench results salvage writes what is sound")


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
    lines = [
        f"read:     {done.cells:,} cells with {done.rows:,} rows, and the records of {done.runs:,} runs",
        f"left out: {len(done.left_out):,} cells next to rows that cannot be read",
        f"lost:     {done.lost_rows:,} numbers of rows and {done.lost_runs:,} of runs; some may have had none",
        f"store:    {into}",
    ]
    show({"store": into, **asdict(done), "left_out": sorted(done.left_out)}, lines, as_json=json)


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
    done = "would be removed" if dry_run else "removed"
    text = f"{rows:,} rows of {cells:,} cells that were measured again with newer source: {done} ({store})"
    show({"store": store, "cells": cells, "rows": rows, "removed": not dry_run}, text, as_json=json)


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
