"""``highway-bench answer``: which connection to take, from the results that come with the package."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import print_json


class For(StrEnum):
    """What counts."""

    HELD_OUT = "held-out"
    TIME = "time"
    STEP = "step"
    MEMORY = "memory"
    LOSS = "loss"


def answer(
    kind: Annotated[str, typer.Argument(help="Kind of layer: mlp, convolution, bilstm, transformer, gpt, …")],
    depth: Annotated[int, typer.Option(help="Number of layers.")] = 12,
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
    if not json:
        typer.echo("\n".join(answer_lines(table, chosen, depth, what)))
        return
    found = rankings(table, chosen, depth, what)
    depths = [{"depth": one.depth, "take": one.take, "as_good": one.as_good, "rows": one.rows} for one in found]
    print_json({"kind": chosen.label, "for": what, "sentence": sentence(found, depth), "depths": depths})
