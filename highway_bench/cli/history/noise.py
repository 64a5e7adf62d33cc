"""``highway-bench history noise``: what a comparison of this commit with itself shows on this machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from highway_bench.cli._options import AsJson
from highway_bench.cli._output import Printed, show, text_table
from highway_bench.cli.history.left_out import left_out_as_json, raise_failed, report_left_out
from highway_bench.cli.history.options import BlockOption, DepthOption, Device, FamilyOption, Pairs, Root, chosen_cells

if TYPE_CHECKING:
    from highway_bench.history.compare import Compared


def noise(
    block: BlockOption = None,
    family: FamilyOption = None,
    depth: DepthOption = None,
    pairs: Pairs = 12,
    device: Device = None,
    json: AsJson = False,
    root: Root = Path("."),
) -> None:
    """Compare HEAD with itself, as the gate compares commits: how much pairs of processes differ by chance.

    With that, how many pairs of processes make an interval of ± 2.5 %, which the gate needs to see a slow-down of 5 %.
    Exits with status 1 if a cell failed.
    """
    from highway_bench.history.compare import Precision, compare
    from highway_bench.history.machine import this_machine
    from highway_bench.history.paths import Paths

    paths = Paths.of(root)
    every = compare(
        paths,
        "HEAD",
        "HEAD",
        chosen_cells(paths.suite(), block, family, depth),
        precision=Precision(least=pairs, most=pairs),
        device=this_machine(device).device,
        report=lambda line: typer.echo(line, err=True),
    )
    compared, left_out = report_left_out(every)
    rows = [as_json(one) for one in compared]
    data = {"pairs": pairs, "cells": rows, "left_out": left_out_as_json(left_out)}
    show(data, noise_tables(compared, rows, pairs), as_json=json)
    raise_failed(left_out)


def noise_tables(
    compared: Sequence[Compared], rows: Sequence[Mapping[str, float | int | str]], pairs: int
) -> Iterator[Printed]:
    """The spread of each cell."""
    from highway_bench.history.compare import Precision

    yield text_table(
        "HEAD relative to itself",
        ["cell", "ratio", "sd of a pair", "pairs needed", "waited"],
        [
            [
                str(one.cell),
                f"{row['ratio']:.3f}",
                f"{100 * float(row['sd']):.1f} %",
                str(row["pairs_needed"]) if int(row["pairs_needed"]) <= Precision().most else "undecided",
                f"{100 * one.waited:.0f} %",
            ]
            for one, row in zip(compared, rows, strict=True)
        ],
        note=f"sd over {pairs} pairs of processes; *pairs needed* for an interval of ± 2.5 % at 98 %, by which the "
        f"gate judges a single series, undecided if these are more than {Precision().most}; *waited*: the share of the "
        "wall time in which steps waited for a core, left out",
    )


def as_json(one: Compared) -> dict[str, float | int | str]:
    """A cell's spread over pairs of processes, and the pairs that the gate needs with it."""
    from statistics import stdev

    sd = stdev(map(math.log, one.ratios))
    return {**one.cell._asdict(), "ratio": one.ratio().value, "sd": sd, "pairs_needed": pairs_needed(sd)}


def pairs_needed(sd: float) -> int:
    """The fewest pairs whose interval of 98 % is ± 2.5 % or narrower, at least as many as the gate starts with."""
    from scipy import stats

    from highway_bench.history.compare import CONFIDENCE, LEAST, Precision

    pairs = Precision().least
    while stats.t.ppf(CONFIDENCE, pairs - 1) * sd / math.sqrt(pairs) > math.log(LEAST):
        pairs += 1
    return pairs
