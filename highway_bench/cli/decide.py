"""``highway-bench decide``: the trainings that say which connection to use in which family."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import AsJson, ClusterAddress, EngineName, LogPath, StrictSource, WorkerCount, engine_at
from highway_bench.cli._output import print_json, print_table, write_tables
from highway_bench.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from highway_bench.cell import Cell
    from highway_bench.decide.part import Part

STORE = Path("reports/decide.sqlite")


def decide(
    part: Annotated[
        str, typer.Option(help="The part: dense, vision, language, seconds, costs, or one of docs/decide.md.")
    ] = "vision",
    family: Annotated[list[str] | None, typer.Option(help="Only these families of the part.")] = None,
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: Annotated[Path, typer.Option(help="The SQLite file of the results.")] = STORE,
    tables: Annotated[
        Path | None, typer.Option(help="Write the store's tables to this file (.md or .tex); measure nothing.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the candidates; measure nothing.")] = False,
    strict_source: StrictSource = False,
    log_file: LogPath = None,
    json: AsJson = False,
) -> None:
    """Train every connection at its starts, with tuned learning rates and fresh seeds: about twenty hours on two cores.

    Which cells come next depends on the results so far, so the total is known only at the end. Stored trainings are not
    made again, so after an interruption the same command resumes. Part seconds needs the results of language. Part
    costs trains nothing: it measures the step time and the bytes of every connection, in 40 minutes. Both time steps,
    so they need an idle machine.
    """
    from highway_bench.decide.protocol import Trainer, get_part
    from highway_bench.decide.tables import tables as decide_tables
    from highway_bench.execution.progress import showing_progress
    from highway_bench.frames.results import open_results
    from highway_bench.report.format import listed

    if tables is not None:
        written = decide_tables(open_results(store))
        write_tables(written, tables)
        if json:
            print_json({"tables": tables})
        else:
            typer.echo(tables)
        return
    if part == "seconds" and family:
        raise BadInput("part 'seconds' has one family, that of language: leave out --family")
    if dry_run:
        chosen = get_part(part)
        print_candidates(chosen.only(family) if family else chosen, store, as_json=json)
        return
    what = "measurements" if part == "costs" else "trainings"

    def announce(number: int, cells: Sequence[Cell]) -> None:
        depths = listed([f"{depth}" for depth in sorted({cell.depth for cell in cells})])
        typer.echo(f"round {number}: {len(cells)} {what} at depth {depths}", err=True)

    try:
        with showing_progress(log=log_file) as on_event:
            where = engine_at(engine, address, workers)
            trainer = Trainer(store, where, workers, on_event, announce, strict_source)
            chosen = get_part(part, trainer)
            chosen = chosen.only(family) if family else chosen
            trainings = trainer.train(chosen)
    except KeyboardInterrupt:
        raise Interrupted.after_storing(store) from None
    if json:
        print_json({"candidates": chosen.table(), what: len(trainings), "store": str(store)})
    else:
        typer.echo(f"{len(trainings)} {what} of {len(chosen.candidates)} candidates\nstore: {store}")
    if trainer.failures:
        typer.echo(trainer.failures, err=True)
        raise typer.Exit(1)


def print_candidates(part: Part, store: Path, *, as_json: bool) -> None:
    """Print the candidates of a part, and what is usually left of it to measure."""
    from highway_bench.decide.protocol import stored_ends
    from highway_bench.plan.plan import Plan
    from highway_bench.report.format import counted

    cells = part.usual_cells(lambda cells: stored_ends(store, cells))
    estimate = Plan(tuple(cells)).estimate(store, workers=1)
    left = {"usual": len(estimate.cells), "left": len(estimate.left), "core_hours": estimate.seconds / 3600}
    if as_json:
        print_json({"candidates": part.table(), **left})
        return
    rows = [
        [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in row.values()]
        for row in part.table()
    ]
    runs = f"{left['left']} of usually {left['usual']} runs are left, {left['core_hours']:.2g} core-hours"
    title = f"{counted(len(rows), 'candidate')}; {runs}"
    print_table(title, list(part.table()[0]), rows, right=["width", "steps"])
