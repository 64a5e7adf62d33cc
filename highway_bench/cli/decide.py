"""``highway-bench decide``: the trainings that say which connection to use in which family."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import AsJson, EngineName, WorkerCount
from highway_bench.cli._output import print_json, print_table
from highway_bench.errors import BadInput

STORE = Path("reports/decide.sqlite")


def decide(
    part: Annotated[str, typer.Option(help="The part of the protocol: vision.")] = "vision",
    family: Annotated[list[str] | None, typer.Option(help="Only these families of the part.")] = None,
    engine: EngineName = "local",
    workers: WorkerCount = None,
    store: Annotated[Path, typer.Option(help="The SQLite file of the results.")] = STORE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the candidates; measure nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Train every connection at its starts, with tuned learning rates and fresh seeds; a matter of nights.

    Which cells come next depends on the results so far, so the total is known only at the end. Stored trainings are not
    made again, so after an interruption the same command resumes.
    """
    from highway_bench.decide.protocol import parts, train_candidates
    from highway_bench.execution.progress_bar import showing_progress

    candidates = [candidate for candidate in parts(part) if not family or candidate.template.family in family]
    if not candidates:
        raise BadInput(f"part {part!r} has no family {', '.join(family or ())}")
    table = [
        {
            "family": candidate.template.family,
            "block": candidate.template.block,
            "start": str(candidate.template.start),
            "width": candidate.template.width,
            "depths": list(candidate.depths),
            "steps": candidate.template.recipe["steps"],
        }
        for candidate in candidates
    ]
    if dry_run:
        if json:
            print_json({"candidates": table})
            return
        rows = [
            [", ".join(map(str, value)) if isinstance(value, list) else str(value) for value in row.values()]
            for row in table
        ]
        print_table(f"{len(candidates)} candidates", list(table[0]), rows, right=["width", "steps"])
        return

    def announce(number: int, cells: int) -> None:
        typer.echo(f"round {number}: {cells} trainings", err=True)

    try:
        with showing_progress() as on_event:
            trainings = train_candidates(
                candidates, store, engine=engine, workers=workers, on_event=on_event, on_round=announce
            )
    except KeyboardInterrupt:
        raise Interrupted.after_storing(store, fresh=False) from None
    if json:
        print_json({"candidates": table, "trainings": len(trainings), "store": str(store)})
    else:
        typer.echo(f"{len(trainings)} trainings of {len(candidates)} candidates\nstore: {store}")
