"""The summary for print: one table per contest with one row per block, then tables of sections; and the failures."""

from __future__ import annotations

import math
from typing import Any, Final

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Column, Record, Shown
from highway_bench.report.format import NONE, between, count, listed, three
from highway_bench.report.labels import contest_name, contest_text, data_name, size_text, step_text, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.sections import every_section
from highway_bench.report.sections.base import MOST
from highway_bench.success.ladder import FULL_SEEDS, TRAINS, Success
from highway_bench.success.monotone import largest_rise


def summary_tables(results: Results, *, brief: bool = False) -> list[Shown]:
    """One table per contest with verdicts, one per setting with costs alone, then the sections' tables.

    Values that all rows of a table share are in its note. A ``brief`` summary omits the tables of costs if there is a
    contest with verdicts.
    """
    tables: list[Shown] = []
    contests = list(groups(results.summary(), [*CONTEST, "at_depth"]))
    trained = [contest for contest, _ in contests if contest["recipe"] is not None]
    if brief and trained:
        contests = contests[: len(trained)]  # contests with verdicts come first
    families = {contest["family_label"] for contest in trained}
    for contest, part in contests:
        ladder = contest["recipe"] is not None
        if ladder:
            part = part.assign(rise=[_rise(results, contest, str(block)) for block in part["block"]])
        rises = [RISE] if ladder and part["rise"].any() else []
        trained_columns = [TRAINED[0], *rises, *TRAINED[1:], *_costs(results.phase()), L_MAX]
        columns = [column.words("block", "block"), *(trained_columns if ladder else _costs(results.phase()))]
        name = title_of(contest, trained, data_name) if ladder else contest_name(contest)
        title = name if ladder else f"{name}, depth {contest['at_depth']}"
        notes = _notes(contest, part, ladder, families, results.phase())
        tables.append(column.shown(f"summary-{len(tables) + 1}", title, part, columns, note=" ".join(notes)))
    more = [shown for section in every_section() for shown in section.summary(results)]
    return tables + [shown for shown in more if shown.entries]


def folded_tables(results: Results) -> list[Shown]:
    """The tables of the sections that have a heading of their own."""
    more = [shown for section in every_section() if section.heading for shown in section.tables(results)]
    return [shown for shown in more if shown.entries]


def failure_table(results: Results) -> Shown:
    """Cells that failed or were skipped."""
    columns = [
        column.words("task", "task"),
        column.words("family_label", "family"),
        column.whole("depth", "depth"),
        column.words("block", "block"),
        column.words("phase", "phase"),
        column.words("dataset", "data"),
        column.words("status", "status"),
        column.whole("cells", "cells"),
        column.words("message", "reason"),
    ]
    return column.shown("failures", "Failed and skipped cells", results.failures(), columns, most=MOST)


def _notes(contest: dict[str, Any], part: pd.DataFrame, ladder: bool, families: set[str], phase: str) -> list[str]:
    if not ladder:
        setting = f"{contest['dtype']} on {contest['device']}, equal {contest['match']}"
        trained = contest["family_label"] in families  # with other blocks or in another setting
        what = "These blocks were not trained for a verdict here" if trained else "No depth was trained for a verdict"
        return [f"{what}; {setting}.", *size_notes(part, phase)]
    notes = [
        f"{contest_text(contest)}.",
        f"Verdict, loss, accuracy, times, parameters and costs are those at depth {contest['at_depth']}"
        + (", the deepest at which any block trains." if (part["verdict"] == TRAINS).any() else "."),
    ]
    notes += size_notes(part, phase)
    edges = [f"{cell['block']} ({three(cell['edge_rate'])})" for cell in rows_of(part) if cell["edge_rate"] > 0]
    notes += [f"Best rate at the grid's edge: {listed(edges)}; a better one may lie outside."] if edges else []
    notes += [f"Fewer than {FULL_SEEDS} seeds: verdicts are provisional."] if part["provisional"].eq(True).any() else []
    limited = part["limited"].eq(True).any()
    return notes + (["Limited by the budget: another number of steps gives another frontier."] if limited else [])


def ratio_heading(phase: str) -> str:
    """The heading of the step times' ratios in ``phase``."""
    return f"{step_text(phase)} ÷ plain's" if phase else "step ÷ plain's"


def size_notes(costs: pd.DataFrame, phase: str) -> list[str]:
    """Sentences on the sizes of the networks whose steps were timed and whose bytes were counted; of several sizes with
    the families, if ``costs`` has a column ``family``."""
    said: dict[str, list[str]] = {}
    for what, of in ((f"{step_text(phase)}s were timed", "timed"), ("bytes were counted", "bytes")):
        size = [f"{of}_width", f"{of}_batch"]
        sizes = {
            size_text(math.nan, *numbers.values()): list(part["family"].unique()) if "family" in part else []
            for numbers, part in groups(costs.dropna(subset=size).sort_values(size, kind="stable"), size)
        }
        texts = [
            f"{size} ({', '.join(families)})" if len(sizes) > 1 and families else size
            for size, families in sizes.items()
        ]
        if texts:
            said.setdefault("; ".join(texts), []).append(what)
    sentences = [f"{' and '.join(what)} at {sizes}." for sizes, what in said.items()]
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def _l_max(record: Record) -> str:
    value, censored = record["l_max"], record["l_max_censored"]
    if censored == "left":
        return f"< {record['shallowest']:g}"
    return NONE if column.missing(value) else f"{'≥ ' if censored == 'right' else ''}{value:g}"


def _l50(record: Record) -> str:
    value, censored = record["l50"], record["l50_censored"]
    if column.missing(value):
        return NONE
    sign = {"right": "> ", "left": "< "}.get(censored, "")
    interval = between(record["l50_low"], record["l50_high"]) if not censored else ""
    return f"{sign}{three(value)} {interval}".strip()


def _costs(phase: str) -> list[Column]:
    return [
        column.ratio("ratio", ratio_heading(phase), "step time over plain's, 95 % interval"),
        column.number("bytes_per_layer", "bytes per layer", "B", "activations saved for the backward pass"),
        column.whole("params", "parameters"),
    ]


def rise_text(success: Success) -> str:
    """The largest rise of success with depth, with the p value of a success that never rises: "3 of 10 at 20 layers,
    8 of 10 at 200 (monotone over all depths: p = 0.03)"; empty if there is none."""
    rise = largest_rise(success) if success else None
    if rise is None:
        return ""
    ends = [f"{k} of {n}" for k, n in (success[rise.shallow], success[rise.deep])]
    text = f"{ends[0]} at {count(rise.shallow)} layers, {ends[1]} at {count(rise.deep)}"
    text += f" (monotone over all depths: p = {rise.p:.2g})"
    return text if rise.p < RISES else f"{text}, not more than chance gives"


def _rise(results: Results, contest: dict[str, Any], block: str) -> str:
    """``rise_text`` of a block of a contest."""
    setting = {name: contest[name] for name in CONTEST}
    for other, part in results.contests():
        if other == setting:
            own = part[(part["block"] == block) & (part["n"] > 0)]
            return rise_text({int(cell["depth"]): (int(cell["k"]), int(cell["n"])) for cell in rows_of(own)})
    return ""


RISES: Final = 0.05
"""The level at which a rise of success with depth is stated."""
RISE: Final = column.words("rise", "rise", "where success rises with depth, with a test of a success that never rises")
L_MAX: Final = column.computed("L_max", _l_max, "largest depth that trains and whose shallower depths all train")
TRAINED: Final = (
    column.computed("L50", _l50, "depth at which half of the seeds succeed, with a 95 % bootstrap interval"),
    column.percent("area", "area", "under the success rate over log depth, as a share of the maximum"),
    column.words("verdict", "verdict"),
    column.spread("final_loss", "final loss", "loss_low", "loss_high", "1", "nat, with a 95 % t interval"),
    column.percent("test_accuracy", "test accuracy", "mean over seeds"),
)
