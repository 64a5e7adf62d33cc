"""``highway-bench run``, which measures a profile's cells, and ``peers``, which times other implementations of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import measuring
from highway_bench.cli._options import (
    STORE,
    AsJson,
    ClusterAddress,
    EngineName,
    LogPath,
    MeasureAgain,
    Plugins,
    StorePath,
    StrictSource,
    WorkerCount,
    engine_at,
    with_options_of,
)
from highway_bench.cli._output import MOST_NAMED, Printed, console, notes, show, text_table, write_tables
from highway_bench.errors import HighwayBenchError
from highway_bench.peers.request import PeerRequest
from highway_bench.plan.selection import Selection
from highway_bench.results import parsed
from highway_bench.terminal import finite

if TYPE_CHECKING:
    import pandas as pd

    from highway_bench.plan.estimate import Estimate
    from highway_bench.plan.plan import Ending, RunResult

PEER = (  # the columns of a comparison
    *("peer", "version", "block", "family", "depth", "width", "batch_size", "phase", "mode", "device", "machine"),
    *("step_time", "peer_time", "saved_activations", "peer_saved", "difference", "status", "message", "verdict"),
)


class Unexpected(HighwayBenchError):
    """A cell ended with a status that the profile does not expect of it."""


@with_options_of(Selection, argument="task")
def run(
    profile: Annotated[str, typer.Option(help="The cells to start from: smoke, standard or frontier.")] = "standard",
    options: Mapping[str, Any] = MappingProxyType({}),
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: StorePath = STORE,
    plugin: Plugins = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the number of cells, and roughly their time and memory; measure nothing."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 1 also if a cell ends with a status that the profile does not expect."
        ),
    ] = False,
    rerun: MeasureAgain = None,
    strict_source: StrictSource = False,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Only part I of N of the cells, as in 3/8; equal in cost.")
    ] = None,
    log_file: LogPath = None,
    details: Annotated[bool, typer.Option("--details", help="Print all tables, not only their first lines.")] = False,
    json: AsJson = False,
) -> None:
    """Measure a profile's cells and store the results.

    Options narrow or change the profile. Those with several values may be repeated: --depth 10 --depth 50. Stored cells
    are not measured again, so after an interruption the same command resumes.
    """
    from highway_bench.execution.schedule import FAILED
    from highway_bench.plan.plan import Plan

    plan = Plan.of(profile, Selection.of(**options), plugin or ())
    plan = plan if shard is None else plan.shard(shard)
    notes([*plan.remarks, *plan.changes(store)])
    again = rerun or FAILED
    if dry_run:
        print_plan(plan.estimate(store, workers=workers, rerun=again, strict_source=strict_source), store, as_json=json)
        return
    with measuring(store, log=log_file, rerun=rerun) as on_event:
        result = plan.run(
            store,
            engine=engine_at(engine, address, workers),
            workers=workers,
            rerun=again,
            strict_source=strict_source,
            on_event=on_event,
            command=["highway-bench", *sys.argv[1:]],
        )
    unexpected = result.unexpected if strict else []
    status = Unexpected.exit_status if unexpected else result.summary.exit_status
    show(as_dict(result, store, status), ended(result, store, details=details), as_json=json)
    if unexpected:
        notes(named("unexpected", unexpected))
        raise Unexpected(f"{len(unexpected)} cells ended with a status that profile {profile!r} does not expect")
    raise typer.Exit(status)


@with_options_of(PeerRequest, argument="peer")
def peers(
    options: Mapping[str, Any] = MappingProxyType({}),
    store: StorePath = Path("reports/peers.sqlite"),
    tables: Annotated[Path | None, typer.Option(help="Also write the tables to this file (.md or .tex).")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost; measure nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Time our networks and other implementations of them in turn, on equal weights and inputs.

    A peer whose outputs or gradients are not ours is an error, and is not timed. Stored cells are not measured again.
    keras and x-transformers: pip install highway-bench[peers].
    """
    from highway_bench.peers.comparison import plan_of
    from highway_bench.peers.table import peer_table, peer_tables

    plan = plan_of(PeerRequest.of(**options))
    if dry_run:
        print_plan(plan.estimate(store), store, as_json=json)
        return
    with measuring(store) as on_event:
        result = plan.run(store, on_event=on_event, command=["highway-bench", *sys.argv[1:]])
    table = peer_table(result.rows)
    written = peer_tables(table)
    if tables is not None:
        write_tables(written, tables)
    comparisons = [comparison(row) for _, row in table.iterrows()]
    data = {"store": store, "comparisons": comparisons, "failures": plain(result.failures)}
    parts: list[Printed] = [part for one in written for part in (one, "")]
    show(data, [*parts, f"store: {store}"], as_json=json)
    if not json:
        notes(named("failed", result.failures))
    raise typer.Exit(result.summary.exit_status)


def print_plan(estimate: Estimate, store: Path, *, as_json: bool) -> None:
    """Print the number of cells by task and family, then their time and memory. As JSON, every cell."""

    def data() -> dict[str, Any]:
        cells = [parsed(cell.columns()) for cell in estimate.cells]
        cost = {"stored": estimate.stored, "seconds": estimate.seconds, "bytes": estimate.bytes}
        return {"store": store, **cost, "cells": cells}

    show(data, planned(estimate, store), as_json=as_json)


def planned(estimate: Estimate, store: Path) -> Iterator[Printed]:
    """The number of cells by task and family, then their time and memory."""
    from highway_bench.execution.progress import duration
    from highway_bench.provenance.free_memory import PROCESS_BYTES, gib

    numbers = Counter((cell.task, cell.family, cell.dataset or "") for cell in estimate.cells)
    yield text_table("Cells", ["task", "family", "data set", "cells"], [[*where, n] for where, n in numbers.items()])
    left = len(estimate.cells) - estimate.stored
    yield f"\n{len(estimate.cells)} cells, {estimate.stored} of them in {store} already"
    if left:
        guessed = any(cell.device != "cpu" for cell in estimate.cells)
        yield (
            f"about {duration(estimate.seconds)} for the other {left}, without start-up of workers"
            f"{' (on a GPU, a guess from closed forms)' if guessed else ''}; the largest "
            f"needs about {gib(estimate.bytes)}, and each worker {gib(PROCESS_BYTES)} for torch itself"
        )


def as_dict(result: RunResult, store: Path, exit_status: int) -> dict[str, Any]:
    """A run as plain data."""
    summary = result.summary
    return {
        "run_id": summary.run_id,
        "store": store,
        "cells": len(summary.digests),
        "counts": {str(status): count for status, count in summary.counts.items()},
        "measured": summary.measured,
        "stored": summary.stored,
        "seconds": summary.seconds,
        "exit_status": exit_status,
        "failures": plain(result.failures),
        "unexpected": plain(result.unexpected),
    }


def ended(result: RunResult, store: Path, *, details: bool) -> Iterator[Printed]:
    """The tables of the rows, or their first lines, the failures, the number of cells by status, the next command."""
    from highway_bench.execution.progress import duration
    from highway_bench.frames.results import Results
    from highway_bench.report.console import brief, summary

    results, ran, cells = Results(result.rows, result.runs), result.summary, len(result.summary.digests)
    yield from summary(results) if details else brief(results, console().width)
    yield from named("failed", result.failures)
    by_status = ", ".join(f"{count} {status}" for status, count in Counter(ran.counts).most_common())
    if ran.measured == 0:
        yield f"\nall {cells} cells are in the store already: {by_status}"
    else:
        took = duration(ran.seconds)
        yield f"\n{cells} cells: {by_status}; {ran.measured} measured in {took}, {ran.stored} were in the store"
    yield f"store: {store}"
    yield f"next:  highway-bench report --store {store}"


def named(what: str, endings: Sequence[Ending]) -> Iterator[str]:
    """Cells, one a line, at most ``MOST_NAMED``."""
    for ending in endings[:MOST_NAMED]:
        why = f" ({ending.message})" if ending.message else ""
        yield f"{what}: {ending.cell}: {ending.status}{why}"
    if len(endings) > MOST_NAMED:
        yield f"{what}: and {len(endings) - MOST_NAMED} more"


def plain(endings: Iterable[Ending]) -> list[dict[str, Any]]:
    """Endings as plain data."""
    return [{"cell": parsed(one.cell.columns()), "status": str(one.status), "message": one.message} for one in endings]


def comparison(row: pd.Series) -> dict[str, Any]:
    """One comparison with a peer as plain data; null where there is no value."""
    values = finite({str(name): value for name, value in row.items()})
    ratios = {
        name: {"value": values[name], "low": values[f"{name}_low"], "high": values[f"{name}_high"]}
        for name in ("ratio", "gpu_ratio")
    }
    return {name: values[name] for name in PEER} | ratios
