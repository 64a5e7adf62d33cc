"""``highway-bench advise``: which connection to use for a layer, at one depth, within minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from highway_bench.advice import ADVICES
from highway_bench.cell import TARGETS
from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import (
    AsJson,
    ClusterAddress,
    EngineName,
    FamilyOptions,
    Plugins,
    WorkerCount,
    assignments,
    engine_at,
)
from highway_bench.cli._output import console, print_json, print_table


def advise(
    layer: Annotated[str, typer.Argument(help="Your layer as module:factory or FILE.py:factory, or a family.")],
    depth: Annotated[int, typer.Option(help="Layers that are joined.")],
    minutes: Annotated[float, typer.Option(help="The time for all measurements.")] = 10.0,
    data: Annotated[
        str | None,
        typer.Option(
            help="A data set, a text file, or data of your own as module:NAME; by default, by the layer's kind."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help=f"What the targets of your own data are: {', '.join(TARGETS)}.")
    ] = None,
    data_option: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="An option of the data set, such as pooled=1; repeatable.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="A loss of your own, module:function of outputs and targets.")
    ] = None,
    optimiser: Annotated[
        str | None, typer.Option(help="sgd or adamw; by default, adamw for sequences and sgd for others.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps of each final; by default, as many as fit.")] = None,
    width: Annotated[int | None, typer.Option(help="Plain's width; others have as many parameters.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Items per step.")] = None,
    block: Annotated[
        list[str] | None, typer.Option(help="Only these blocks and pre-norm, wildcards too; by default, all.")
    ] = None,
    family_option: FamilyOptions = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default, cuda if available.")] = None,
    repetition: Annotated[int, typer.Option(min=0, help="Another number gives other seeds.")] = 0,
    out: Annotated[Path, typer.Option(help="The folder for the folders of advices.")] = ADVICES,
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    plugin: Plugins = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the layer, print what would be compared; measure nothing.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Say which connection a layer should have at a depth, what it costs, and how sure that is.

    Compares as many connections and starts as the minutes allow, lists the others, and writes a page. Results are
    stored, so after an interruption the same command resumes, and run again it gives the same answer.
    """
    options: dict[str, Any] = {
        "depth": depth,
        "minutes": minutes,
        "data": data,
        "data_options": assignments("--data-option", data_option),
        "loss": loss,
        "optimiser": optimiser,
        "steps": steps,
        "width": width,
        "batch_size": batch_size,
        "block": block or (),
        "family_options": assignments("--family-option", family_option),
        "device": device,
        "repetition": repetition,
        "target": target,
    }
    if dry_run:
        print_preview(layer, options, plugin or (), workers, as_json=json)
        return
    from highway_bench.advice.run import advise as measure

    try:
        advice = measure(
            layer,
            **options,
            out=out,
            plugins=plugin or (),
            engine=engine_at(engine, address, workers),
            workers=workers,
            progress=True,
            command=["highway-bench", *sys.argv[1:]],
        )
    except KeyboardInterrupt:
        raise Interrupted.after_storing(out) from None
    if json:
        print_json(advice.plain())
        raise typer.Exit(advice.exit_status)
    from highway_bench.advice.page import finalists_table
    from highway_bench.report.console import print_table as print_shown

    typer.echo("\n".join(advice.lines()) + "\n")
    print_shown(finalists_table(advice), console())
    for note in advice.notes:
        typer.echo(note)
    typer.echo(f"page: {advice.page}")
    raise typer.Exit(advice.exit_status)


def print_preview(layer: str, options: dict[str, Any], plugins: Any, workers: int | None, *, as_json: bool) -> None:
    """Print what would be compared, and the memory of it."""
    from highway_bench.advice.about import about, notes_on
    from highway_bench.advice.fit import fit
    from highway_bench.advice.request import requested
    from highway_bench.plugins import load_plugins
    from highway_bench.provenance.free_memory import gib
    from highway_bench.provenance.machine import cores
    from highway_bench.terminal import prints_to_stderr

    modules = load_plugins(plugins)
    request = requested(layer, **options)
    request.preflight(modules)
    with prints_to_stderr():
        fitted = fit(request, workers or cores())
    table = [
        {"block": one.block, "start": str(one.start), "width": request.widths[one.block]} for one in request.connections
    ]
    facts, notes = about(request, fitted), notes_on(request, fitted, request.depth)
    if as_json:
        print_json({**facts, "connections": table, "notes": notes})
        return
    title = f"{facts['layer']} ({facts['kind']}): {len(table)} connections, as far as time allows"
    print_table(title, ["block", "start", "width"], [list(row.values()) for row in table], right=["width"])
    typer.echo(f"\n{' '.join(notes)}")
    typer.echo(f"{fitted.workers} at a time, {gib(fitted.workers * facts['bytes'])} in all")
