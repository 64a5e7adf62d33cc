"""``highway-bench compare-my-block``: one block against the committed connections."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import AsJson, ClusterAddress, EngineName, WorkerCount, engine_at
from highway_bench.cli._output import print_json, print_table
from highway_bench.json_values import finite

if TYPE_CHECKING:
    from highway_bench.comparison.contrasts import BlockContrast, BlockPosition
    from highway_bench.comparison.my_block import BlockComparison
    from highway_bench.measure.statistics import IntervalEstimate

STORE = Path("reports/compare.sqlite")


def compare_my_block(
    file: Annotated[str, typer.Argument(help="The .py file that registers your block; a module's name works too.")],
    block: Annotated[str | None, typer.Option(help="The block, if the file registers several.")] = None,
    part: Annotated[str, typer.Option(help="The part of decide's protocol: dense, vision or language.")] = "vision",
    family: Annotated[list[str] | None, typer.Option(help="Only these families of the part.")] = None,
    minutes: Annotated[
        float, typer.Option(help="No depth is begun that would not end within this time; two cores need about 30.")
    ] = 30.0,
    rows: Annotated[
        Path | None, typer.Option(help="The folder of committed rows; by default docs/data of this checkout.")
    ] = None,
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: Annotated[Path, typer.Option(help="The SQLite file of your block's results.")] = STORE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be trained; train nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Train one block, and rank it among the committed connections.

    Three seeds of pre-norm are trained first: if their losses do not agree with the committed rows, nothing is
    compared.
    Stored trainings are not repeated, so the same command resumes.
    """
    from highway_bench.comparison.my_block import COMMITTED, block_in, chosen_references
    from highway_bench.comparison.my_block import compare_my_block as compare
    from highway_bench.comparison.rungs import instead_of
    from highway_bench.execution.progress import showing_progress

    if dry_run:
        name = block_in(file, block)
        candidates = [instead_of(starts[0], name) for starts in chosen_references(part, family or ()).values()]
        if json:
            print_json(
                {
                    "block": name,
                    "candidates": [
                        {"family": one.template.family, "width": one.template.width, "depths": list(one.depths)}
                        for one in candidates
                    ],
                }
            )
            return
        print_table(
            f"{name} would be trained in",
            ["family", "width", "depths"],
            [[one.template.family, one.template.width, ", ".join(map(str, one.depths))] for one in candidates],
            right=["width"],
            note=f"A depth is begun only if it would end within {minutes:g} minutes (--minutes) and the block trained "
            "at the depth before it.",
        )
        return
    try:
        with showing_progress() as on_event:
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
    except KeyboardInterrupt:
        raise Interrupted.after_storing(store) from None
    if json:
        print_json(as_json(compared, store))
    else:
        print_comparison(compared, store)
    raise typer.Exit(compared.exit_status)


def print_comparison(compared: BlockComparison, store: Path) -> None:
    """Print the position in each family and depth, then every contrast."""
    checks = "; ".join(f"{one.family} {one.ratio}" for one in compared.checks)
    print_table(
        f"{compared.block} among the committed connections",
        ["family", "depth", "seeds that succeed", "loss", "rank", "better than", "undecided", "worse than"],
        [
            [
                *(one.family, one.depth, f"{one.successes} of {one.runs}", loss(one), rank(one)),
                *(one.count(standing) for standing in ("better", "undecided", "worse")),
            ]
            for one in compared.positions
        ],
        right=["depth", "better than", "undecided", "worse than"],
        note="Brackets are 95 % intervals. Loss of pre-norm here over the committed one, with intervals that hold "
        f"together with 95 %: {checks}.",
    )
    typer.echo()
    print_table(
        "Each connection",
        ["family", "depth", "connection", f"{compared.block} is", "share that succeeds, difference", "loss ÷ its loss"],
        [
            [one.family, one.depth, other.other, other.standing, other.success, ratio(other)]
            for one in compared.positions
            for other in one.contrasts
        ],
        right=["depth"],
        note="Shares are of seeds, from 0 to 1; the intervals of their differences hold together with 95 % in a family "
        "and depth (Bonferroni). Losses are compared where more than half of the seeds of both succeed, and their p is "
        "corrected by Holm.",
    )
    for line in compared.missing:
        typer.echo(f"not measured: {line}")
    typer.echo(f"store: {store}")


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


def as_json(compared: BlockComparison, store: Path) -> dict[str, Any]:
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
    return finite(
        {
            "connection": other.other,
            "standing": other.standing,
            "success": bounds(other.success),
            "loss": bounds(other.loss),
            "p": other.p,
        }
    )


def bounds(estimate: IntervalEstimate) -> dict[str, float | None]:
    """An estimate with its interval; null where it has none."""
    return finite({"value": estimate.value, "low": estimate.low, "high": estimate.high})
