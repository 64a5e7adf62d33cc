"""``highway-bench run``: measure."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import STORE, AsJson, BlockOptions, FamilyOptions, Plugins, StorePath, assignments
from highway_bench.cli._output import console, print_json
from highway_bench.errors import HighwayBenchError
from highway_bench.results import parsed

if TYPE_CHECKING:
    from highway_bench.plan.estimate import Estimate
    from highway_bench.running import Ending, Ran

MOST_NAMED = 20  # cells listed one by one at the end

Many = list[str] | None
Numbers = list[int] | None


class Unexpected(HighwayBenchError):
    """A cell ended in a way that the profile does not expect of it."""


def run(
    task: Annotated[Many, typer.Argument(help="Tasks, wildcards too; by default, all of the profile's.")] = None,
    profile: Annotated[
        str, typer.Option(help="The cells to start from: smoke, standard, full or frontier.")
    ] = "standard",
    block: Annotated[Many, typer.Option(help="Blocks, wildcards too ('highway*').")] = None,
    family: Annotated[Many, typer.Option(help="Families, wildcards too, or your own layer as module:factory.")] = None,
    depth: Annotated[Numbers, typer.Option(help="Layers that the block joins.")] = None,
    width: Annotated[Numbers, typer.Option(help="Plain's width; other blocks get theirs by --match.")] = None,
    match: Annotated[str | None, typer.Option(help="What is held equal between blocks: params, flops, width.")] = None,
    dtype: Annotated[Many, typer.Option(help="float32, bfloat16, float16, float64.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default, cuda where there is one.")] = None,
    mode: Annotated[Many, typer.Option(help="eager, compile, cudagraph.")] = None,
    phase: Annotated[Many, typer.Option(help="forward, forward-backward, train-step.")] = None,
    seed: Annotated[Numbers, typer.Option(help="Seeds of trained cells.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set of trained cells.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Items a step.")] = None,
    seq_len: Annotated[Numbers, typer.Option(help="Steps of a sequence.")] = None,
    block_option: BlockOptions = None,
    family_option: FamilyOptions = None,
    recipe: Annotated[
        Many,
        typer.Option(
            metavar="K=V",
            help="Over the profile's recipe, for the tasks that have the word: steps=100, rate=0.1, seconds=1, …",
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of timed cells; by default, as many as torch takes.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes side by side; by default, one a core.")] = None,
    store: StorePath = STORE,
    plugin: Plugins = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the cells, and about how much time and memory they take; measure nothing."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Leave with 1 also where a cell ends in a way that the profile does not expect."),
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what the store has.")] = False,
    json: AsJson = False,
) -> None:
    """Measure a profile's cells into a store.

    Options narrow or change the profile. Those that name several values may be repeated: --depth 10 --depth 50. What
    the store has is not measured again, so the same command goes on where it was interrupted. Blocks that are timed in
    turn are timed again together when one is added.
    """
    from highway_bench import running
    from highway_bench.execution.progress_bar import showing_progress

    words: dict[str, Any] = {
        "block": block,
        "family": family,
        "depth": depth,
        "width": width,
        "match": match,
        "dtype": dtype,
        "device": device,
        "mode": mode,
        "phase": phase,
        "seed": seed,
        "dataset": dataset,
        "batch_size": batch_size,
        "seq_len": seq_len,
        "block_options": assignments("--block-option", block_option),
        "family_options": assignments("--family-option", family_option),
        "recipe": assignments("--recipe", recipe),
        "threads": threads,
    }
    words |= {"profile": profile, "store": store, "plugins": plugin or [], "workers": workers, "resume": not fresh}
    if dry_run:
        print_plan(running.dry_run(task, **words), store, as_json=json)
        return
    try:
        with showing_progress() as on_event:
            ran = running.measure(task, on_event=on_event, command=["highway-bench", *sys.argv[1:]], **words)
    except KeyboardInterrupt:
        raise Interrupted.keeping(store, fresh=fresh) from None
    print_results(ran, store, as_json=json)
    if strict and ran.unexpected:
        name_cells("unexpected", ran.unexpected)
        raise Unexpected(f"{len(ran.unexpected)} cells ended in a way that profile {profile!r} does not expect")
    raise typer.Exit(ran.summary.exit_status)


def print_plan(estimate: Estimate, store: Path, *, as_json: bool) -> None:
    """The cells one a line, then what they take."""
    if as_json:
        print_json(
            {
                "store": store,
                "stored": estimate.stored,
                "seconds": estimate.seconds,
                "bytes": estimate.bytes,
                "cells": [parsed(cell.columns()) for cell in estimate.cells],
            }
        )
        return
    from highway_bench.execution.progress_bar import duration

    for cell in estimate.cells:
        typer.echo(str(cell))
    left = len(estimate.cells) - estimate.stored
    typer.echo(f"\n{len(estimate.cells)} cells, {estimate.stored} of them in {store} already")
    if left:
        typer.echo(
            f"about {duration(estimate.seconds)} for the other {left}, start-up of workers aside; the largest "
            f"needs about {estimate.bytes / 2**20:,.0f} MiB, beside some 300 MiB a worker for torch itself"
        )


def print_results(ran: Ran, store: Path, *, as_json: bool) -> None:
    """The tables of the rows, how the cells ended, and what to do next."""
    from highway_bench.execution.progress_bar import duration

    summary = ran.summary
    counts = {str(status): count for status, count in summary.counts.items()}
    if as_json:
        print_json(
            {
                "run_id": summary.run_id,
                "store": store,
                "cells": len(summary.digests),
                "counts": counts,
                "measured": summary.measured,
                "stored": summary.stored,
                "seconds": summary.seconds,
                "exit_status": summary.exit_status,
                "failures": plain(ran.failures),
                "unexpected": plain(ran.unexpected),
            }
        )
        return
    from highway_bench.report import print_summary

    print_summary(ran.rows, console())
    name_cells("failed", ran.failures)
    cells = len(summary.digests)
    ended = ", ".join(f"{count} {status}" for status, count in Counter(counts).most_common())
    typer.echo()
    if summary.measured == 0:
        typer.echo(f"all {cells} cells are in the store already: {ended}")
    else:
        typer.echo(
            f"{cells} cells: {ended}; {summary.measured} measured in {duration(summary.seconds)}, "
            f"{summary.stored} were in the store"
        )
    typer.echo(f"store: {store}")
    typer.echo(f"next:  highway-bench report --store {store}")


def name_cells(what: str, endings: list[Ending]) -> None:
    """Cells one a line on stderr, the first of many."""
    for ending in endings[:MOST_NAMED]:
        typer.echo(
            f"{what}: {ending.cell}: {ending.status}" + (f" ({ending.message})" if ending.message else ""), err=True
        )
    if len(endings) > MOST_NAMED:
        typer.echo(f"{what}: and {len(endings) - MOST_NAMED} more", err=True)


def plain(endings: Iterable[Ending]) -> list[dict[str, Any]]:
    """Endings as plain data."""
    return [{"cell": parsed(one.cell.columns()), "status": str(one.status), "message": one.message} for one in endings]
