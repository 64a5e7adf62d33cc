"""``highway-bench reproduce``: measures published results again."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import (
    AsJson,
    ClusterAddress,
    EngineName,
    LogPath,
    MeasureAgain,
    StrictSource,
    WorkerCount,
    engine_at,
    with_options_of,
)
from highway_bench.cli._output import print_json, show, text_table
from highway_bench.errors import BadInput
from highway_bench.studies.reproduce.request import Request
from highway_bench.terminal import finite

if TYPE_CHECKING:
    from highway_bench.cell import Cell
    from highway_bench.plan.estimate import Estimate
    from highway_bench.studies.reproduce.base import Reproduction
    from highway_bench.studies.reproduce.claims import Claim
    from highway_bench.studies.reproduce.power import Power
    from highway_bench.studies.reproduce.quantities import Region
    from highway_bench.studies.reproduce.running import Reproduced

STORE = Path("reports/reproduce.sqlite")


@with_options_of(Request)
def reproduce(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="The reproduction; without a name, all are listed.")] = None,
    options: Mapping[str, Any] = MappingProxyType({}),
    engine: EngineName = "local",
    address: ClusterAddress = None,
    workers: WorkerCount = None,
    store: Annotated[Path, typer.Option(help="The SQLite file of the results.")] = STORE,
    out: Annotated[Path, typer.Option(help="The folder for tables and figures.")] = Path("reports/reproduce"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cost; measure nothing.")] = False,
    names: Annotated[bool, typer.Option("--names", help="Print all names, one per line.")] = False,
    rerun: MeasureAgain = None,
    strict_source: StrictSource = False,
    log_file: LogPath = None,
    json: AsJson = False,
) -> None:
    """Measure a published result again and compare: published, measured, verdict.

    The cost is printed first. Stored cells are not measured again, so after an interruption the same command resumes.
    """
    from highway_bench.execution.schedule import FAILED
    from highway_bench.studies.reproduce import running
    from highway_bench.studies.reproduce.base import reproductions

    choices = {name: reproductions.get(name) for name in reproductions}
    if names:
        if json:
            print_json({"names": list(choices)})
        else:
            typer.echo("\n".join(choices))
        return
    if name is None:
        words_given = [word for word in sorted(context.params) if word != "json" and is_given(context, word)]
        if given := [f"--{word.replace('_', '-')}" for word in words_given]:
            raise BadInput(
                f"{', '.join(given)}: these options need a reproduction's name; highway-bench reproduce lists them"
            )
        print_choices(choices.values(), as_json=json)
        return
    request = running.request_for(name, options)
    estimate = running.cost(
        name, request, store=store, workers=workers, rerun=rerun or FAILED, strict_source=strict_source
    )
    claims = reproductions.get(name).claims(request) if dry_run else ()
    if not json or dry_run:
        print_cost(estimate, store, claims, has_rounds=reproductions.get(name).has_rounds, as_json=json)
    if dry_run:
        return
    from highway_bench.execution.progress import showing_progress

    def announce(number: int, cells: Sequence[Cell]) -> None:
        if number > 1:
            typer.echo(f"round {number}: {len(cells)} more cells, which follow from the results so far", err=True)

    try:
        with showing_progress(log=log_file) as on_event:
            reproduced = running.reproduce(
                name,
                request,
                store=store,
                out=out,
                engine=engine_at(engine, address, workers),
                workers=workers,
                rerun=rerun or FAILED,
                strict_source=strict_source,
                on_event=on_event,
                on_round=announce,
                command=["highway-bench", *sys.argv[1:]],
            )
    except KeyboardInterrupt:
        raise Interrupted.after_storing(store, rerun) from None
    print_reproduced(reproduced, as_json=json)
    raise typer.Exit(reproduced.summary.exit_status)


def print_choices(choices: Iterable[Reproduction], *, as_json: bool) -> None:
    """All reproductions, with the options that mean something to each."""
    if as_json:
        entries = [
            {name: getattr(one, name) for name in ("name", "title", "source", "scales")}
            | {"options": sorted(one.takes)}
            for one in choices
        ]
        print_json({"reproductions": entries})
        return
    rows = [
        [one.name, one.title, one.source, " ".join(f"--{word}" for word in sorted(one.takes)), ", ".join(one.scales)]
        for one in choices
    ]
    show({}, text_table("Reproductions", ["name", "what", "source", "takes", "scales"], rows), as_json=False)


def is_given(context: typer.Context, word: str) -> bool:
    """Whether a parameter is given on the command line, not by default."""
    source = context.get_parameter_source(word)
    return source is not None and source.name == "COMMANDLINE"


def print_cost(estimate: Estimate, store: Path, claims: Sequence[Claim], *, has_rounds: bool, as_json: bool) -> None:
    """Print the number of cells, roughly their time and memory, and the power of the design for each of ``claims``.

    With rounds, cells follow from the results of others, and the numbers are the usual ones.
    """
    left = len(estimate.cells) - estimate.stored
    if as_json:
        print_json(
            {
                "cells": len(estimate.cells),
                "usual": has_rounds,
                "stored": estimate.stored,
                "seconds": estimate.seconds,
                "bytes": estimate.bytes,
                "claims": [claim_entry(one) | {"power": power_entry(one.power())} for one in claims],
            }
        )
        return
    from highway_bench.execution.progress import duration
    from highway_bench.plan.checks import missing_data
    from highway_bench.provenance.free_memory import PROCESS_BYTES, gib

    typer.echo(
        f"cells: {'usually ' if has_rounds else ''}{len(estimate.cells)}, of which {estimate.stored} in {store} already"
    )
    if left:
        typer.echo(
            f"cost:  about {duration(estimate.seconds)} for the other {left} on this machine as it is now, and up to "
            f"{gib(estimate.bytes)} per worker, and {gib(PROCESS_BYTES)} for torch itself"
        )
    for name, reason in missing_data(estimate.cells).items():
        typer.echo(f"data:  {name}: {reason}")
    rows = [[one.statement, one.rule, one.power_text(one.power())] for one in claims if not one.exact]
    if rows:
        show({}, text_table("Power of this design", ["claim", "rule", "power"], rows), as_json=False)


def claim_entry(claim: Claim) -> dict[str, Any]:
    """A claim as JSON."""
    same = ("source", "rule", "quantity", "confidence", "guard", "irrefutable", "needs", "least", "unit", "n")
    return {
        "published": claim.statement,
        "evidence": str(claim.evidence),
        "statistic": str(claim.statistic),
        "region": region_entry(claim.region),
        "refuted": [region_entry(one) for one in claim.refuted],
        "version": claim.version.version,
        "date": claim.version.date,
        **finite({name: getattr(claim, name) for name in (*same, "stated")}),
    }


def region_entry(region: Region) -> dict[str, Any]:
    """A region as JSON; null for a side without a bound."""
    return finite(asdict(region))


def power_entry(power: Power | None) -> dict[str, Any] | None:
    """A power as JSON; a number that does not exist is null."""
    return None if power is None else finite(asdict(power))


def print_reproduced(reproduced: Reproduced, *, as_json: bool) -> None:
    """Print findings, tables, what was not attempted, and the files."""
    if as_json:
        print_json(
            {
                "name": reproduced.reproduction.name,
                "findings": [
                    claim_entry(one.claim)
                    | {
                        "measured": one.measured,
                        "quantities": [finite(asdict(quantity)) for quantity in one.quantities],
                        "power": power_entry(one.power),
                        "verdict": str(one.verdict),
                        "why": one.why,
                    }
                    for one in reproduced.conclusion.findings
                ],
                "files": reproduced.files,
                "counts": {str(key): value for key, value in reproduced.summary.counts.items()},
            }
        )
        return
    from highway_bench.report.console import explained

    findings = text_table(
        reproduced.reproduction.title,
        ["published", "evidence", "measured", "verdict", "rule", "power"],
        [one.entries for one in reproduced.conclusion.findings],
        note=f"source: {reproduced.reproduction.source}",
    )
    show({}, [*explained(reproduced.conclusion.tables), "", findings], as_json=False)
    for left in reproduced.reproduction.not_attempted:
        typer.echo(f"not attempted: {left.published} ({left.source}): {left.why}")
    typer.echo()
    for file in reproduced.files:
        typer.echo(f"written: {file}")
