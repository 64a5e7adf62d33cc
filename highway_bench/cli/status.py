"""``highway-bench status``: how far a run is, from another terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from highway_bench.cli._options import STORE, AsJson, StorePath
from highway_bench.cli._output import MOST_NAMED, print_json
from highway_bench.terminal import printable

if TYPE_CHECKING:
    from highway_bench.results.schema import Row


def status(store: StorePath = STORE, json: AsJson = False) -> None:
    """Show the last run into a store: done, failed and why, time left.

    The run may be running, in another terminal, or have been interrupted; it is not disturbed.
    """
    from highway_bench.execution.progress import counted, time_left
    from highway_bench.results.run_status import run_status

    now = run_status(store)
    failures = [{"cell": _name(row), "status": row["status"], "message": row["message"]} for row in now.failures]
    if json:
        print_json({**asdict(now), "store": store, "done": now.done, "failed": now.failed, "failures": failures})
        return
    by_status = ", ".join(f"{count} {name}" for name, count in sorted(now.counts.items(), key=lambda one: -one[1]))
    lines = [
        f"run {now.run_id}: {now.state}" + (f" (process {now.process})" if now.state == "running" else ""),
        f"command: {' '.join(now.command)}",
        f"started: {now.started[:19].replace('T', ' ')} UTC, last change {now.updated[:19].replace('T', ' ')} UTC",
        f"done:    {now.done} of {counted(now.cells)}" + (f": {by_status}" if by_status else ""),
    ]
    if now.state != "finished":
        lines.append(f"left:    {time_left(now.left)}")
    if now.state == "interrupted":
        lines.append("next:    the same command resumes")
    lines += [f"now:     {name}" for name in now.running]
    for one in failures[:MOST_NAMED]:
        lines.append(f"{one['status']}: {one['cell']}" + (f": {one['message']}" if one["message"] else ""))
    if len(failures) > MOST_NAMED:
        lines.append(f"and {len(failures) - MOST_NAMED} more failed")
    typer.echo("\n".join(map(printable, lines)))


def _name(row: Row) -> str:
    """The name of the cell of ``row``; if its columns are no cell's, those that the name begins with."""
    from highway_bench.cell import Cell

    try:
        return str(Cell.of_columns(row))
    except (TypeError, ValueError):
        return " ".join(f"{name} {row[name]}" for name in ("task", "block", "family", "depth", "width"))
