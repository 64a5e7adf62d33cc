"""``highway-bench reproduce``: published results, measured again."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import AsJson
from highway_bench.cli._output import console, print_json, print_table
from highway_bench.errors import BadInput

if TYPE_CHECKING:
    from highway_bench.plan.estimate import Estimate
    from highway_bench.reproduce.base import Reproduction
    from highway_bench.reproduce.running import Reproduced

STORE = Path("reports/reproduce.sqlite")


def reproduce(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Which; without one, all are listed.")] = None,
    scale: Annotated[
        str | None, typer.Option(help="desk (default: a CPU, minutes) or paper (a GPU, hours), where there are both.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Epochs to train.")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps.")] = None,
    trials: Annotated[int | None, typer.Option(help="Trials of a search, for every block and depth.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds of runs that count.")] = None,
    depth: Annotated[list[int] | None, typer.Option(help="Layers as the publication counts them; repeatable.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; by default, cuda where there is one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes side by side; by default, one a core.")] = None,
    store: Annotated[Path, typer.Option(help="The SQLite file that keeps the results.")] = STORE,
    out: Annotated[Path, typer.Option(help="Where tables and figures are written.")] = Path("reports/reproduce"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost; measure nothing.")] = False,
    names: Annotated[bool, typer.Option("--names", help="Print the names of all, one a line.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure again what the store has.")] = False,
    json: AsJson = False,
) -> None:
    """Measure a published result again, and say what came of it: published, measured, verdict.

    The cost is printed first. What the store has is not measured again, so the same command goes on where it was
    interrupted.
    """
    from highway_bench.reproduce import running as reproducing

    choices = reproducing.choices()
    if names:
        if json:
            print_json({"names": list(choices)})
        else:
            typer.echo("\n".join(choices))
        return
    if name is None:
        words_given = [word for word in sorted(context.params) if word != "json" and is_given(context, word)]
        if given := [f"--{word.replace('_', '-')}" for word in words_given]:
            raise BadInput(f"{', '.join(given)}: of which reproduction? highway-bench reproduce lists them")
        print_choices(choices.values(), as_json=json)
        return
    asked = reproducing.asked_for(
        name,
        scale=scale,
        device=device,
        epochs=epochs,
        steps=steps,
        trials=trials,
        seeds=seeds,
        depths=tuple(depth or ()),
    )
    words: dict[str, Any] = {"store": store, "workers": workers, "resume": not fresh}
    told = reproducing.cost(name, asked, **words)
    if not json or dry_run:
        print_cost(told, store, as_json=json)
    if dry_run:
        return
    from highway_bench.execution.progress_bar import showing_progress

    try:
        with showing_progress() as on_event:
            done = reproducing.reproduce(
                name, asked, out=out, on_event=on_event, command=["highway-bench", *sys.argv[1:]], **words
            )
    except KeyboardInterrupt:
        raise Interrupted.keeping(store, fresh=fresh) from None
    print_done(done, as_json=json)
    raise typer.Exit(done.summary.exit_status)


def print_choices(choices: Iterable[Reproduction], *, as_json: bool) -> None:
    """All reproductions, with the options that mean something to each."""
    options = {one.name: ["depth" if word == "depths" else word for word in sorted(one.takes)] for one in choices}
    if as_json:
        entries = [
            {
                "name": one.name,
                "title": one.title,
                "source": one.source,
                "options": options[one.name],
                "scales": one.scales,
            }
            for one in choices
        ]
        print_json({"reproductions": entries})
        return
    print_table(
        "Reproductions",
        ["name", "what", "source", "takes", "scales"],
        [
            [
                one.name,
                one.title,
                one.source,
                " ".join(f"--{word}" for word in options[one.name]),
                ", ".join(one.scales),
            ]
            for one in choices
        ],
    )


def is_given(context: typer.Context, word: str) -> bool:
    """Whether a parameter is on the command line, and no default."""
    source = context.get_parameter_source(word)
    return source is not None and source.name == "COMMANDLINE"


def print_cost(told: Estimate, store: Path, *, as_json: bool) -> None:
    """What is to be measured, and about how long it takes."""
    left = len(told.cells) - told.stored
    if as_json:
        print_json({"cells": len(told.cells), "stored": told.stored, "seconds": told.seconds, "bytes": told.bytes})
        return
    from highway_bench.execution.progress_bar import duration
    from highway_bench.plan.checks import missing_data

    typer.echo(f"cells: {len(told.cells)}, of which {told.stored} in {store} already")
    if left:
        typer.echo(
            f"cost:  about {duration(told.seconds)} for the other {left} on an idle machine, and up to "
            f"{told.bytes / 2**20:,.0f} MiB a worker, beside some 300 MiB for torch itself"
        )
    for name, reason in missing_data(told.cells).items():
        typer.echo(f"data:  {name}: {reason}")


def print_done(done: Reproduced, *, as_json: bool) -> None:
    """Findings, tables, what was not attempted, and the files."""
    if as_json:
        print_json(
            {
                "name": done.reproduction.name,
                "findings": [
                    {
                        "published": one.published,
                        "source": one.source,
                        "measured": one.measured,
                        "evidence": str(one.evidence),
                        "rule": one.rule,
                        "verdict": str(one.verdict),
                    }
                    for one in done.outcome.findings
                ],
                "files": done.files,
                "counts": {str(key): value for key, value in done.summary.counts.items()},
            }
        )
        return
    from highway_bench.report.console import print_table as print_shown

    for shown in done.outcome.tables:
        typer.echo()
        print_shown(shown, console())
    typer.echo()
    print_table(
        done.reproduction.title,
        ["published", "evidence", "measured", "verdict", "rule"],
        [[one.published, str(one.evidence), one.measured, str(one.verdict), one.rule] for one in done.outcome.findings],
        note=f"source: {done.reproduction.source}",
    )
    for left in done.reproduction.not_attempted:
        typer.echo(f"not attempted: {left.published} ({left.source}): {left.why}")
    typer.echo()
    for file in done.files:
        typer.echo(f"written: {file}")
