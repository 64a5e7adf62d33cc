"""``highway-bench decide``, the trainings that say which connection to use, and ``enter``, a block of yours on the
board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import measuring
from highway_bench.cli._options import (
    AsJson,
    ClusterAddress,
    EngineName,
    LogPath,
    StorePath,
    StrictSource,
    WorkerCount,
    engine_at,
)
from highway_bench.cli._output import Printed, bounds, show, text_table, write_tables
from highway_bench.errors import BadInput
from highway_bench.terminal import finite

if TYPE_CHECKING:
    from highway_bench.cell import Cell
    from highway_bench.studies.decide.part import Protocol
    from highway_bench.studies.entries.columns import ColumnResult

PartFamilies = Annotated[list[str] | None, typer.Option("--family", help="Only these families of the part.")]


def decide(
    part: Annotated[
        str, typer.Option(help="The part: dense, vision, language, seconds, costs, or one of docs/decide.md.")
    ] = "vision",
    family: PartFamilies = None,
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: StorePath = Path("reports/decide.sqlite"),
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
    from highway_bench.frames.results import open_results
    from highway_bench.report.format import listed
    from highway_bench.studies.decide.protocol import get_part
    from highway_bench.studies.decide.rounds import Trainer
    from highway_bench.studies.decide.tables import tables as decide_tables

    if tables is not None:
        written = decide_tables(open_results(store))
        write_tables(written, tables)
        show({"tables": tables}, tables, as_json=json)
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

    with measuring(store, log=log_file) as on_event:
        where = engine_at(engine, address, workers)
        trainer = Trainer(store, where, workers, on_event, announce, strict_source)
        chosen = get_part(part, trainer)
        chosen = chosen.only(family) if family else chosen
        trainings = trainer.train(chosen.pending)
    text = f"{len(trainings)} {what} of {len(chosen.candidates)} candidates\nstore: {store}"
    show({"candidates": chosen.table(), what: len(trainings), "store": store}, text, as_json=json)
    if trainer.failures:
        typer.echo(trainer.failures, err=True)
        raise typer.Exit(1)


def print_candidates(part: Protocol, store: Path, *, as_json: bool) -> None:
    """Print the candidates of a part, and what is usually left of it to measure."""
    from highway_bench.plan.plan import Plan
    from highway_bench.report.format import counted
    from highway_bench.studies.decide.rounds import stored_ends

    cells = part.usual_cells(lambda cells: stored_ends(store, cells))
    estimate = Plan(tuple(cells)).estimate(store, workers=1)
    left = {"usual": len(estimate.cells), "left": len(estimate.left), "core_hours": estimate.seconds / 3600}
    candidates = part.table()
    rows = [
        [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in row.values()]
        for row in candidates
    ]
    runs = f"{left['left']} of usually {left['usual']} runs are left, {left['core_hours']:.2g} core-hours"
    title = f"{counted(len(rows), 'candidate')}; {runs}"
    table = text_table(title, list(candidates[0]), rows)
    show({"candidates": candidates, **left}, [table], as_json=as_json)


def enter(
    file: Annotated[str, typer.Argument(help="The .py file that registers your block; a module's name works too.")],
    paper: Annotated[str, typer.Option(help="Where the block is published: arXiv:2601.00001, or an address.")],
    author: Annotated[str, typer.Option(help="Who enters it.")] = "",
    block: Annotated[str | None, typer.Option(help="The block, if the file registers several.")] = None,
    out: Annotated[Path, typer.Option(help="The folder of entries.")] = Path("entries"),
    workers: WorkerCount = None,
    store: Annotated[Path | None, typer.Option(help="By default one in reports/entries.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be trained; train nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Measure your block against pre-norm in a fixed set of columns, and write an entry for the board: about half an
    hour on two cores.

    The entry is a folder with the block's file, its rows and a card. First the block's contract is checked. Stored
    trainings are not repeated, so the same command resumes.
    """
    from highway_bench.plan.plan import Plan
    from highway_bench.studies.entries.enter import block_in, default_store
    from highway_bench.studies.entries.enter import enter as entered
    from highway_bench.studies.entries.protocol import EntryWork, entry_columns

    name = block_in(file, block)
    path = store or default_store(name)
    if dry_run:
        work = EntryWork(name, entry_columns())
        estimate = Plan(tuple(work.usual_cells())).estimate(path, workers=1)
        left = {"usual": len(estimate.cells), "left": len(estimate.left), "core_hours": estimate.seconds / 3600}
        rows = [[one.label, work.missing.get(one.label, "yes")] for one in work.columns]
        runs = f"{left['left']} of usually {left['usual']} runs are left, {left['core_hours']:.2g} core-hours"
        show({"block": name, **left}, [text_table(f"{name}: {runs}", ["column", "trained"], rows)], as_json=json)
        return
    with measuring(path) as on_event:
        entry, work = entered(
            file, paper=paper, author=author, block=block, out=out, store=path, workers=workers, on_event=on_event
        )
    results = entry.results(work.columns)
    data = {"block": name, "folder": entry.folder, "columns": [column_data(one) for one in results]}
    show(data, entry_parts(name, results, entry.folder), as_json=json)


def column_data(one: ColumnResult) -> dict[str, Any]:
    """A column of an entry as plain data."""
    low, high = one.step_bounds
    return {
        "column": one.label,
        "word": one.word,
        "difference": bounds(one.difference),
        "step": finite({"value": one.step, "low": low, "high": high}),
        "trains": one.trains,
        "seeds": one.seeds,
        "start": one.start,
        **finite({"rate": one.rate}),
    }


def entry_parts(name: str, results: Sequence[ColumnResult], folder: Path) -> Iterator[Printed]:
    """An entry's columns as a table, and its folder."""
    from highway_bench.studies.entries.folder import per_cent, step_text

    rows = [
        [
            one.label,
            one.word,
            per_cent(one.difference.value, one.difference.low, one.difference.high) if one.difference.n else "",
            f"{one.trains} of {one.seeds}" if one.seeds else "",
            step_text(one).removeprefix("step × "),
            one.start,
            f"{one.rate:g}" if one.seeds else "",
        ]
        for one in results
    ]
    heads = ["column", "word", "held-out loss, %", "seeds that train", "step", "start", "rate"]
    note = "Paired by seed with pre-norm; 95 % for all columns together. Step: over pre-norm's."
    yield text_table(f"{name} against pre-norm", heads, rows, note=note)
    yield f"entry: {folder}"
