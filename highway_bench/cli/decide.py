"""``highway-bench decide``, the trainings that say which connection to use, and ``compare-my-block``, a block among
them."""

from __future__ import annotations

import math
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
    from highway_bench.studies.comparison.contrasts import BlockContrast, BlockPosition
    from highway_bench.studies.comparison.my_block import BlockComparison
    from highway_bench.studies.decide.part import Protocol

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


def compare_my_block(
    file: Annotated[str, typer.Argument(help="The .py file that registers your block; a module's name works too.")],
    block: Annotated[str | None, typer.Option(help="The block, if the file registers several.")] = None,
    part: Annotated[str, typer.Option(help="The part of decide's protocol: dense, vision or language.")] = "vision",
    family: PartFamilies = None,
    minutes: Annotated[
        float, typer.Option(help="No depth is begun that would not end within this time; two cores need about 30.")
    ] = 30.0,
    rows: Annotated[
        Path | None, typer.Option(help="The folder of committed rows; by default docs/data of this checkout.")
    ] = None,
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: StorePath = Path("reports/compare.sqlite"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be trained; train nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Train one block, and rank it among the committed connections.

    Three seeds of pre-norm are trained first: if their losses do not agree with the committed rows, nothing is
    compared.
    Stored trainings are not repeated, so the same command resumes.
    """
    from highway_bench.studies.comparison.finals import instead_of
    from highway_bench.studies.comparison.my_block import COMMITTED, block_in, chosen_references
    from highway_bench.studies.comparison.my_block import compare_my_block as compare

    if dry_run:
        name = block_in(file, block)
        candidates = [instead_of(starts[0], name) for starts in chosen_references(part, family or ()).values()]
        shapes: list[dict[str, Any]] = [
            {"family": one.template.family, "width": one.template.width, "depths": list(one.depths)}
            for one in candidates
        ]
        table = text_table(
            f"{name} would be trained in",
            ["family", "width", "depths"],
            [[one["family"], one["width"], ", ".join(map(str, one["depths"]))] for one in shapes],
            note=f"A depth is begun only if it would end within {minutes:g} minutes (--minutes) and the block trained "
            "at the depth before it.",
        )
        show({"block": name, "candidates": shapes}, [table], as_json=json)
        return
    with measuring(store) as on_event:
        compared = compare(
            file,
            block=block,
            part=part,
            families=family or (),
            rows=COMMITTED if rows is None else rows,
            store=store,
            minutes=minutes,
            engine=engine_at(engine, address, workers),
            workers=workers,
            on_event=on_event,
        )
    show(as_dict(compared, store), comparison(compared, store), as_json=json)
    raise typer.Exit(compared.exit_status)


def comparison(compared: BlockComparison, store: Path) -> Iterator[Printed]:
    """The position in each family and depth, then every contrast."""
    checks = "; ".join(f"{one.family} {one.ratio}" for one in compared.checks)
    yield text_table(
        f"{compared.block} among the committed connections",
        ["family", "depth", "seeds that succeed", "loss", "rank", "better than", "undecided", "worse than"],
        [
            [
                *(one.family, one.depth, f"{one.successes} of {one.runs}", loss(one), rank(one)),
                *(one.count(standing) for standing in ("better", "undecided", "worse")),
            ]
            for one in compared.positions
        ],
        note="Brackets are 95 % intervals. Loss of pre-norm here over the committed one, with intervals that hold "
        f"together with 95 %: {checks}.",
    )
    yield ""
    yield text_table(
        "Each connection",
        ["family", "depth", "connection", f"{compared.block} is", "share that succeeds, difference", "loss ÷ its loss"],
        [
            [one.family, one.depth, other.other, other.standing, other.success, ratio(other)]
            for one in compared.positions
            for other in one.contrasts
        ],
        note="Shares are of seeds, from 0 to 1; the intervals of their differences hold together with 95 % in a family "
        "and depth (Bonferroni). Losses are compared where more than half of the seeds of both succeed, and their p is "
        "corrected by Holm.",
    )
    yield from (f"not measured: {line}" for line in compared.missing)
    yield f"store: {store}"


def loss(position: BlockPosition) -> str:
    return "no mean: a seed diverged, or has a loss of 0" if math.isnan(position.loss.value) else str(position.loss)


def rank(position: BlockPosition) -> str:
    """The ranks that the block may have: ``2 to 5 of 13``."""
    first, last = position.ranks
    of = len(position.contrasts) + 1
    if (first, last) == (1, of):
        return f"undecided, 1 to {of}"
    return f"{first} of {of}" if first == last else f"{first} to {last} of {of}"


def ratio(other: BlockContrast) -> str:
    return "not compared" if math.isnan(other.p) else f"{other.loss}, p = {other.p:.2g}"


def as_dict(compared: BlockComparison, store: Path) -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "block": compared.block,
        "store": store,
        "checks": [{"family": one.family, "depth": one.depth, "ratio": bounds(one.ratio)} for one in compared.checks],
        "positions": [
            {
                "family": one.family,
                "dataset": one.dataset,
                "depth": one.depth,
                "rate": one.rate,
                "successes": one.successes,
                "runs": one.runs,
                "loss": bounds(one.loss),
                "first_rank": one.ranks[0],
                "last_rank": one.ranks[1],
                "contrasts": [plain(other) for other in one.contrasts],
            }
            for one in compared.positions
        ],
        "missing": list(compared.missing),
    }


def plain(other: BlockContrast) -> dict[str, Any]:
    return {
        "connection": other.other,
        "standing": other.standing,
        "success": bounds(other.success),
        "loss": bounds(other.loss),
        **finite({"p": other.p}),
    }
