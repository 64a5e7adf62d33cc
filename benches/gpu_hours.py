"""The GPU-hours that the paper-scale Figure 1 would take, from the steps of a slice that is in a store.

    python -m benches.gpu_hours reports/gpu/results.sqlite

A network's seconds are its share of those of the population in which it trained, so they add up. The trials of a depth
and the runs of its winner train in populations of other sizes; each counts with its own step.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benches.gpu_steps import WHOLE
from highway_bench.execution.schedule import with_needs
from highway_bench.frames.results import open_results
from highway_bench.frames.rows import of_task, rows_of, scalar
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.request import Request


class Kind(NamedTuple):
    """Networks that take the same time a step. ``depth`` is without the first layer."""

    block: str
    depth: int
    is_trial: bool


def step_seconds(store: Path, device: str) -> dict[Kind, float]:
    """The median seconds of a network's step on ``device``, by kind."""
    rows = scalar(of_task(open_results(store).rows, "trainability"), "step_seconds")
    samples: dict[Kind, list[float]] = defaultdict(list)
    for row in rows_of(rows[rows["value"].notna() & rows["device"].eq(device) & rows["family"].eq("dense")]):
        samples[Kind(row["block"], int(row["depth"]), row["trial"] == row["trial"])].append(row["value"])
    return {kind: median(values) for kind, values in samples.items()}


def table(seconds: dict[Kind, float], device: str) -> str:
    """The hours of each kind of the whole, in Markdown, and their sum."""
    whole: dict[Kind, int] = defaultdict(int)  # steps
    for cell in with_needs(reproductions.get("figure1").cells(Request(scale="paper", device=device))):
        whole[Kind(cell.block, cell.depth, cell.trial is not None)] += int(cell.recipe["steps"])
    lines = ["| block | layers | networks' steps | seconds a network's step | hours |", "|---|---|---|---|---|"]
    total, lacking = 0.0, 0
    for kind, steps in sorted(whole.items()):
        name = f"{kind.block}, {'trials' if kind.is_trial else 'winner'}"
        if kind in seconds:
            hours = steps * seconds[kind] / 3600
            total += hours
            lines.append(f"| {name} | {kind.depth + 1} | {steps:,} | {seconds[kind]:.3g} | {hours:.3g} |")
        else:
            lacking += 1
            lines.append(f"| {name} | {kind.depth + 1} | {steps:,} | not measured | |")
    remark = f", without the {lacking} kinds that were not measured" if lacking else ""
    return "\n".join([*lines, "", f"{WHOLE}{total:.3g} hours on this device{remark}", ""])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    given = parser.parse_args()
    sys.stdout.write(table(step_seconds(given.store, given.device), given.device))


if __name__ == "__main__":
    main()
