"""The summary as it is printed: a table a contest with a row a block, then what the sections add; and the failures."""

from __future__ import annotations

from typing import Any

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Entry, Record, Shown
from highway_bench.report.format import NONE, between, listed, three
from highway_bench.report.labels import contest_name, contest_text, size_text, title_of
from highway_bench.report.results import Results
from highway_bench.report.rows import CONTEST, groups, rows_of
from highway_bench.report.sections import every_section
from highway_bench.report.sections.base import MOST
from highway_bench.success import FULL_SEEDS, TRAINS

TIMED = ("ratio_depth", "ratio_width", "ratio_batch", "ratio_from")


def summary_tables(results: Results, *, brief: bool = False) -> list[Shown]:
    """The summary, a table a contest and one a setting of costs alone, then those of sections; what all rows share is
    said once, in the note. A ``brief`` summary has costs alone only where nothing was trained for a verdict."""
    found: list[Shown] = []
    contests = list(groups(results.summary(), [*CONTEST, "at_depth"]))
    trained = [contest for contest, _ in contests if contest["recipe"] is not None]
    if brief and trained:
        contests = contests[: len(trained)]  # they come first
    families = {contest["family_label"] for contest in trained}
    for contest, part in contests:
        ladder = contest["recipe"] is not None
        timed = part.loc[part["ratio_depth"].notna(), list(TIMED)].drop_duplicates()
        alike = len(timed) == 1
        columns = [column.words("block", "block"), *(TRAINED if ladder else []), *COST]
        columns += [] if alike else [column.made("timed at", _timed, "whose steps were timed", is_number=False)]
        name = title_of(contest, trained, contest_name) if ladder else contest_name(contest)
        title = name if ladder else f"{name}, depth {contest['at_depth']}"
        notes = _notes(contest, part, ladder, families) + ([_step(rows_of(timed)[0])] if alike else [])
        found.append(column.shown(f"summary-{len(found) + 1}", title, part, columns, note=" ".join(notes)))
    more = [shown for section in every_section() for shown in section.summary(results)]
    return found + [shown for shown in more if shown.entries]


def folded_tables(results: Results) -> list[Shown]:
    """The tables of sections that the page folds away under a heading of their own."""
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


def _notes(contest: dict[str, Any], part: pd.DataFrame, ladder: bool, families: set[str]) -> list[str]:
    if not ladder:
        setting = f"{contest['dtype']} on {contest['device']}, equal {contest['match']}"
        trained = contest["family_label"] in families  # other blocks, or in another setting
        what = "These blocks were not trained for a verdict here" if trained else "No depth was trained with a verdict"
        return [f"{what}; {setting}.", *bytes_notes(part)]
    notes = [
        f"{contest_text(contest)}.",
        f"Verdict, loss, time and parameters are those at depth {contest['at_depth']}, "
        f"the deepest at which any block trains."
        if (part["verdict"] == TRAINS).any()
        else f"Verdict, loss, time and parameters are those at depth {contest['at_depth']}.",
    ]
    notes += bytes_notes(part)
    edges = [f"{cell['block']} ({three(cell['edge_rate'])})" for cell in rows_of(part) if cell["edge_rate"] > 0]
    notes += [f"Best rate at the grid's edge: {listed(edges)}; a better one may lie outside."] if edges else []
    notes += [f"Fewer than {FULL_SEEDS} seeds: verdicts are provisional."] if part["provisional"].eq(True).any() else []
    limited = part["limited"].eq(True).any()
    return notes + (["Limited by the budget: with other steps the frontier is elsewhere."] if limited else [])


def bytes_notes(part: pd.DataFrame) -> list[str]:
    """The sizes at which the bytes of a summary's rows were counted."""
    sizes = part.loc[part["bytes_depth"].notna(), ["bytes_depth", "bytes_width", "bytes_batch"]].drop_duplicates()
    texts = [size_text(*size) for size in sorted(sizes.itertuples(index=False, name=None))]
    return [f"Bytes were counted at {'; '.join(texts)}."] if texts else []


def _step(timed: Record) -> str:
    size = size_text(timed["ratio_depth"], timed["ratio_width"], timed["ratio_batch"])
    return f"Steps were timed at {size}: {timed['ratio_from']}."


def _l_max(record: Record) -> Entry:
    value, censored = record["l_max"], record["l_max_censored"]
    if column.missing(value):
        return Entry(NONE, -1.0)
    sign = {"right": "≥ ", "left": "< "}.get(censored, "")
    return Entry(f"{sign}{value:g}", float(value) + (0.5 if censored == "right" else -0.5 if censored == "left" else 0))


def _l50(record: Record) -> Entry:
    value, censored = record["l50"], record["l50_censored"]
    if column.missing(value):
        return Entry(NONE, -1.0)
    sign = {"right": "> ", "left": "< "}.get(censored, "")
    interval = between(record["l50_low"], record["l50_high"]) if not censored else ""
    return Entry(f"{sign}{three(value)} {interval}".strip(), float(value) + (0.5 if censored == "right" else 0))


def _timed(record: Record) -> Entry:
    if column.missing(record["ratio_depth"]):
        return Entry("")
    size = size_text(record["ratio_depth"], record["ratio_width"], record["ratio_batch"])
    text = f"{size}, {record['ratio_from']}"
    return Entry(text, text)


COST = (
    column.ratio("step_ratio", "step ÷ plain's", "step time over plain's, 95 % interval"),
    column.number("bytes_per_layer", "bytes a layer", "B", "kept for the backward pass"),
    column.whole("params", "parameters"),
)
TRAINED = (
    column.made("L_max", _l_max, "largest depth that trains with every shallower one"),
    column.made("L50", _l50, "depth at which half of the seeds succeed, with a 95 % bootstrap interval"),
    column.percent("area", "area", "under success against log depth, as a share of the ladder's"),
    column.words("verdict", "verdict"),
    column.spread("final_loss", "final loss", "loss_low", "loss_high", "1", "nat, with a 95 % t interval"),
    column.reached("to threshold", "seconds_to_threshold", "s", "median time of training until the loss threshold"),
)
