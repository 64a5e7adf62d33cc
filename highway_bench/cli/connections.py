"""``highway-bench answer``, ``export`` and ``advise``: which connection to take, and its code.

The first two read the results that come with the package; ``advise`` measures a layer, at one depth, within minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.cli._errors import Interrupted
from highway_bench.cli._options import (
    AsJson,
    ClusterAddress,
    EngineName,
    Layers,
    Plugins,
    WorkerCount,
    engine_at,
    with_options_of,
)
from highway_bench.cli._output import Printed, show, text_table
from highway_bench.studies.advice.options import ADVICES, AdviceOptions
from highway_bench.terminal import finite

if TYPE_CHECKING:
    from highway_bench.studies.advice.answer import Advice
    from highway_bench.studies.advice.before_training import Fit
    from highway_bench.studies.advice.request import AdviceRequest


class For(StrEnum):
    """What counts."""

    HELD_OUT = "held-out"
    TIME = "time"
    STEP = "step"
    MEMORY = "memory"
    LOSS = "loss"


def answer(
    kind: Annotated[str, typer.Argument(help="Kind of layer: mlp, convolution, bilstm, transformer, gpt, …")],
    depth: Layers = 12,
    what: Annotated[For, typer.Option("--for", help="What counts.")] = For.HELD_OUT,
    json: AsJson = False,
) -> None:
    """Say which connection to take.

    The results are those that come with the package; ``run`` and ``advise`` measure your own. Between two measured
    depths, both are shown.
    """
    from highway_bench.report.choice.answers import known_answers
    from highway_bench.report.choice.lines import answer_lines, rankings, sentence
    from highway_bench.report.choice.ranking import kind_named, kinds_of

    table = known_answers()
    chosen = kind_named(kind, kinds_of(table))

    def data() -> dict[str, Any]:
        found = rankings(table, chosen, depth, what)
        depths = [
            {"depth": one.depth, "take": one.take, "as_good": one.as_good, "rows": list(map(finite, one.rows))}
            for one in found
        ]
        return {"kind": chosen.label, "for": what, "sentence": sentence(found, depth), "depths": depths}

    lines = [] if json else answer_lines(table, chosen, depth, what)
    show(data, lines, as_json=json)


def export(
    connection: Annotated[str, typer.Argument(help="The connection, as in 'highway-bench list blocks'.")],
    depth: Layers = 12,
    start: Annotated[str | None, typer.Option(help="How the weights begin; by default, its first start.")] = None,
    json: AsJson = False,
) -> None:
    """Print a connection as one file of plain torch.

    It joins layers of your own, (…, width) with the features last, and imports torch only.
    """
    from highway_bench.export.text import plain_torch

    text = plain_torch(connection, depth=depth, start=start)
    show({"connection": connection, "depth": depth, "text": text}, text.removesuffix("\n"), as_json=json)


@with_options_of(AdviceOptions)
def advise(
    layer: Annotated[str, typer.Argument(help="Your layer as module:factory or FILE.py:factory, or a family.")],
    depth: Annotated[int, typer.Option(help="Layers that are joined.")],
    minutes: Annotated[float, typer.Option(help="The time for all measurements.")] = 10.0,
    options: Mapping[str, Any] = MappingProxyType({}),
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
    from highway_bench.studies.advice.run import advise as measure
    from highway_bench.studies.advice.run import prepared

    question = {"depth": depth, "minutes": minutes, **options}
    if dry_run:
        _, request, fitted = prepared(layer, plugin or (), workers, **question)
        print_preview(request, fitted, as_json=json)
        return
    try:
        advice = measure(
            layer,
            **question,
            out=out,
            plugins=plugin or (),
            engine=engine_at(engine, address, workers),
            workers=workers,
            progress=True,
            command=["highway-bench", *sys.argv[1:]],
        )
    except KeyboardInterrupt:
        raise Interrupted.after_storing(out) from None
    show(advice.plain(), advised(advice), as_json=json)
    raise typer.Exit(advice.exit_status)


def advised(advice: Advice) -> Iterator[Printed]:
    """The answer, the finalists, and the page that has everything."""
    from highway_bench.studies.advice.page import finalists_table

    yield from advice.lines()
    yield ""
    yield finalists_table(advice)
    yield from advice.notes
    yield f"page: {advice.page}"


def print_preview(request: AdviceRequest, fitted: Fit, *, as_json: bool) -> None:
    """Print what would be compared, and the memory of it."""
    from highway_bench.provenance.free_memory import gib
    from highway_bench.studies.advice.about import about, notes_on

    table = [
        {"block": one.block, "start": str(one.start), "width": request.widths[one.block]} for one in request.connections
    ]
    facts, notes = about(request, fitted), notes_on(request, fitted, request.depth)
    title = f"{facts['layer']} ({facts['kind']}): {len(table)} connections, as far as time allows"
    parts: list[Printed] = [
        text_table(title, ["block", "start", "width"], [list(row.values()) for row in table]),
        f"\n{' '.join(notes)}",
        f"{fitted.workers} at a time, {gib(fitted.workers * fitted.bytes)} in all",
    ]
    show({**facts, "connections": table, "notes": notes}, parts, as_json=as_json)
