"""What was not measured: a page that says nothing of it would be read as if it were."""

from __future__ import annotations

import pandas as pd

from highway_bench.report.format import counted, listed
from highway_bench.report.rows import block_order, family_order, prepared
from highway_bench.report.tables.labels import contest_name
from highway_bench.report.tables.trainability import contests, gives_verdicts, runs, trainability_table
from highway_bench.results.schema import FAILURES, Status
from highway_bench.success import FULL_SEEDS

TASKS = {
    "throughput": "no step was timed",
    "memory": "no memory was counted",
    "trainability": "nothing was trained",
    "propagation": "no signal was followed at the start",
    "gates": "no trained network was looked into",
    "cost": "no multiply-adds were counted",
}


def not_measured(rows: pd.DataFrame) -> list[str]:
    """Lines on what the rows do not cover: tasks, verdicts, combinations, seeds, devices, failures."""
    frame = prepared(rows)
    lines = [f"The {task} task: {what}." for task, what in TASKS.items() if not (frame["task"] == task).any()]
    blocks, families = block_order(frame["label"]), family_order(frame["family_label"])
    for task in TASKS:
        here = frame[(frame["task"] == task) & frame["status"].ne(Status.SKIPPED)]
        have = set(zip(here["label"], here["family_label"], strict=True))
        lacking = [f"{block} in {family}" for family in families for block in blocks if (block, family) not in have]
        if have and lacking:
            more = f" and {len(lacking) - 6} more" if len(lacking) > 6 else ""
            lines.append(
                f"{task.capitalize()} lacks {len(lacking)} of {len(blocks) * len(families)} combinations of block "
                f"and family: {', '.join(lacking[:6])}{more}."
            )
    lines += _training(frame)
    cells = frame.drop_duplicates(
        ["task", "digest", "label", "family_label", "depth", "seed", "trial", "phase", "mode"]
    )
    for status in [*sorted(FAILURES), Status.SKIPPED]:
        count = int((cells["status"] == status).sum())
        if count:
            lines.append(
                f"{count} {'cell' if count == 1 else 'cells'} {status}: listed under failed and skipped cells."
            )
    if not (frame["device"] == "cuda").any():
        lines.append("A GPU: all figures are of a CPU.")
    for column, what in (("machine", "machine"), ("dtype", "data type")):
        found = sorted(frame[column].dropna().unique())
        if len(found) == 1:
            lines.append(f"Any other {what} than {found[0]}.")
    return list(dict.fromkeys(lines))  # contests that differ in their recipe alone have the same gaps


def _training(frame: pd.DataFrame) -> list[str]:
    table = trainability_table(frame)
    if table.empty:
        return []
    lines = []
    short = table[~table["recipe"].map(gives_verdicts)]
    if len(short):
        lines.append(
            f"Whether depths train in {listed(family_order(short['family_label']))}: these had one short loss curve."
        )
    for contest, part in contests(table):
        if part["n"].max() < FULL_SEEDS:
            rest = (
                f"Verdicts rest on {counted(part['n'].max(), 'seed')} and are provisional."
                if part["provisional"].any()
                else f"{counted(part['n'].max(), 'seed')} gave no verdict."
            )
            lines.append(f"{contest_name(contest)}: {FULL_SEEDS} seeds. {rest}")
        lines.append(f"{contest_name(contest)}: depths beyond {part['depth'].max()} and steps beyond the recipe's.")
    if runs(frame)["test_loss"].isna().all():
        lines.append("Generalisation: no test loss was taken.")
    return lines
