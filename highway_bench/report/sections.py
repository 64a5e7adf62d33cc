"""The tables of a report in the form they are printed, on the page and in the terminal alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Entry, Record, Shown
from highway_bench.report.format import NONE, between, listed, quantity, three
from highway_bench.report.network_tables import MOST, further_tables
from highway_bench.report.rows import CONTEST, groups, prepared, rows_of
from highway_bench.report.signal_tables import start_tables, whole_start_table
from highway_bench.report.tables import (
    counts,
    failures,
    memory,
    memory_table,
    propagation,
    rates_table,
    summary,
    throughput,
    throughput_table,
    trainability,
    trainability_table,
)
from highway_bench.report.tables.labels import contest_name, contest_text, size_text
from highway_bench.report.tables.trainability import gives_verdicts, runs
from highway_bench.success import FULL_SEEDS, TRAINS

TIMED = ("ratio_depth", "ratio_width", "ratio_batch", "ratio_from")
FOLDED = ("gates", "cost")
"""Tasks whose tables have a section of their own on the page."""

COLUMNS_OF: Mapping[str, tuple[str, ...]] = {
    "throughput": (*throughput.METRICS, *throughput.RATES),
    "memory": memory.METRICS,
    "trainability": trainability.METRICS,
    "propagation": (*propagation.SIZES, *propagation.LAYERS, *propagation.STILL, "budget_mismatch"),
    "cost": counts.METRICS,
}
"""By task, the scalars that have a column in a table made for them; others go into a table of what is left."""


def summary_tables(rows: pd.DataFrame) -> list[Shown]:
    """The summary, a table a contest, then those of starts; what is the same in every row is said once, in the note."""
    cost = [
        column.ratio("step_ratio", "step ÷ plain's", "step time over plain's, 95 % interval"),
        column.number("bytes_per_layer", "bytes a layer", "B", "kept for the backward pass"),
        column.whole("params", "parameters"),
    ]
    trained = [
        column.made("L_max", _l_max, "largest depth that trains with every shallower one"),
        column.made("L50", _l50, "depth at which half of the seeds succeed, with a 95 % bootstrap interval"),
        column.percent("area", "area", "under success against log depth, as a share of the ladder's"),
        column.words("verdict", "verdict"),
        column.spread("final_loss", "final loss", "loss_low", "loss_high", "1", "nat, with a 95 % t interval"),
        column.made("to threshold", _reached, "median time of training until the loss threshold"),
    ]
    block = [column.words("block", "block")]
    found: list[Shown] = []
    for contest, part in groups(summary(prepared(rows)), [*CONTEST, "at_depth"]):
        ladder = contest["recipe"] is not None
        timed = part.loc[part["ratio_depth"].notna(), list(TIMED)].drop_duplicates()
        alike = len(timed) == 1
        columns = block + (trained if ladder else []) + cost
        columns += [] if alike else [column.made("timed at", _timed, "whose steps were timed", is_number=False)]
        title = contest_name(contest) if ladder else f"{contest_name(contest)}, depth {contest['at_depth']}"
        notes = _notes(contest, part, ladder) + ([_step(rows_of(timed)[0])] if alike else [])
        found.append(column.shown(f"summary-{len(found) + 1}", title, part, columns, note=" ".join(notes)))
    frame = prepared(rows)
    return found + (start_tables(frame) if (frame["task"] == "propagation").any() else [])


def _notes(contest: dict[str, Any], part: pd.DataFrame, ladder: bool) -> list[str]:
    if not ladder:
        made = f"{contest['dtype']} on {contest['device']}, equal {contest['match']}"
        return [f"No depth was trained with a verdict; {made}.", *counted(part)]
    notes = [
        f"{contest_text(contest)}.",
        f"Verdict, loss, time and parameters are those at depth {contest['at_depth']}, "
        f"the deepest at which any block trains."
        if (part["verdict"] == TRAINS).any()
        else f"Verdict, loss, time and parameters are those at depth {contest['at_depth']}.",
    ]
    notes += counted(part)
    edges = [f"{cell['block']} ({three(cell['edge_rate'])})" for cell in rows_of(part) if cell["edge_rate"] > 0]
    notes += [f"Best rate at the grid's edge: {listed(edges)}; a better one may lie outside."] if edges else []
    notes += [f"Fewer than {FULL_SEEDS} seeds: verdicts are provisional."] if part["provisional"].eq(True).any() else []
    limited = part["limited"].eq(True).any()
    return notes + (["Limited by the budget: with other steps the frontier is elsewhere."] if limited else [])


def counted(part: pd.DataFrame) -> list[str]:
    sizes = part.loc[part["bytes_depth"].notna(), ["bytes_depth", "bytes_width", "bytes_batch"]].drop_duplicates()
    texts = [size_text(*size) for size in sorted(sizes.itertuples(index=False, name=None))]
    return [f"Bytes were counted at {'; '.join(texts)}."] if texts else []


def _step(timed: Record) -> str:
    size = size_text(timed["ratio_depth"], timed["ratio_width"], timed["ratio_batch"])
    return f"Steps were timed at {size}: {timed['ratio_from']}."


def whole_tables(rows: pd.DataFrame) -> list[Shown]:
    """Everything measured: by task, a row a cell or a rung, then every training run; without those that are empty."""
    frame = prepared(rows)
    setting = [
        column.words("family_label", "family"),
        column.whole("depth", "depth"),
        column.words("block", "block"),
    ]
    shape = [
        column.whole("width", "width"),
        column.whole("batch_size", "batch"),
        column.whole("seq_len", "length"),
        column.words("match", "equal"),
        column.words("dtype", "dtype"),
        column.words("device", "device"),
        column.whole("params", "parameters"),
        column.percent("budget_mismatch", "parameters off"),
    ]
    end = [column.words("status", "status"), column.words("message", "remark")]
    timed = [
        column.words("phase", "phase"),
        column.words("mode", "mode"),
        column.spread("step_time", "step time [p10, p90]", "step_low", "step_high", "s"),
        column.number("step_time_p99", "p99", "s"),
        column.whole("n", "samples"),
        column.ratio("ratio", "÷ plain's [95 %]"),
        column.percent("noise", "noise floor", "least difference these samples could tell, A against A"),
        column.number("throughput", "throughput", "sample/s"),
        column.number("flop_rate", "FLOP rate", "FLOP/s"),
        column.percents("roofline_share", "of roofline [p10, p90]", "roofline_share_low", "roofline_share_high"),
        column.spread("slowdown", "time ÷ floor [p10, p90]", "slowdown_low", "slowdown_high", "1"),
        column.number("first_step", "first step", "s"),
        column.number("compile_time", "compile", "s"),
        column.whole("graph_breaks", "graph breaks"),
        column.whole("threads", "threads"),
        column.words("machine", "machine"),
    ]
    bytes_of = [
        column.number(name, heading, "B")
        for name, heading in (
            ("parameters", "weights"),
            ("gradients", "gradients"),
            ("optimiser_state", "optimiser state"),
            ("saved_activations", "saved activations"),
            ("saved_per_layer", "saved a layer"),
            ("peak", "peak"),
        )
    ]
    bytes_of += [column.exact_ratio("layer_ratio", "a layer ÷ plain's", "bytes a layer over plain's")]
    recipe = column.made("contest", lambda record: _contest(record), is_number=False)
    rungs = [
        *setting,
        column.words("dataset", "data"),
        column.words("verdict", "verdict"),
        column.made("seeds that train", _k_of_n, "successes of runs, Wilson 95 % interval"),
        column.whole("diverged", "diverged"),
        column.whole("stalled", "stalled"),
        column.whole("unfinished", "unfinished"),
        column.spread("final_loss", "final loss [95 %]", "loss_low", "loss_high", "1"),
        column.made("steps to threshold", lambda record: _reach(record, "steps_to_threshold", "1")),
        column.made("time to threshold", _reached),
        column.number("rate", "rate"),
        column.number("step_seconds", "training step", "s"),
        column.percent("train_accuracy", "train accuracy"),
        column.number("test_loss", "test loss"),
        column.percent("test_accuracy", "test accuracy"),
        column.whole("width", "width"),
        column.whole("params", "parameters"),
        recipe,
        column.words("messages", "remark"),
    ]
    single = [
        *setting,
        column.words("dataset", "data"),
        column.whole("seed", "seed"),
        column.number("final_loss", "final loss"),
        column.whole("success", "success"),
        column.whole("steps_to_threshold", "steps to threshold"),
        column.number("seconds_to_threshold", "time to threshold", "s"),
        column.number("rate", "rate"),
        column.number("step_seconds", "training step", "s"),
        column.whole("together", "trained together", "networks that were trained as one; seconds are shares"),
        column.percent("train_accuracy", "train accuracy"),
        column.number("test_loss", "test loss"),
        column.percent("test_accuracy", "test accuracy"),
        column.percent("budget_mismatch", "parameters off"),
        *end,
    ]
    tables = [
        column.shown("throughput", "Step times", throughput_table(frame), [*setting, *timed, *shape, *end], most=MOST),
        column.shown("memory", "Memory", memory_table(frame), [*setting, *bytes_of, *shape, *end], most=MOST),
        column.shown("trainability", "Trainability, a row a depth", trainability_table(frame), rungs, most=MOST),
        column.shown("runs", "Trainability, a row a run", runs(frame), single, most=MOST),
    ]
    if (frame["task"] == "propagation").any():
        tables.append(whole_start_table(frame, MOST))
    for task in dict.fromkeys(frame["task"].dropna()):
        if task not in FOLDED:
            tables += further(frame, task)
    return [table for table in tables if table.entries]


def rate_table(rows: pd.DataFrame) -> Shown:
    """What each machine was measured to do, which the floors of steps are from."""
    columns = [
        column.words("machine", "machine"),
        column.words("device", "device"),
        column.words("dtype", "dtype"),
        column.whole("threads", "threads"),
    ]
    columns += [
        column.spread(name, f"{heading} [least, most]", f"{name}_low", f"{name}_high", unit)
        for name, (heading, unit) in throughput.RATES.items()
    ]
    columns += [column.whole("n", "measured", "times, once a process")]
    title, note = "What these machines were measured to do", "Medians. The floor of a step's time follows from them."
    return column.shown("rates", title, rates_table(prepared(rows)), columns, note=note)


def further(rows: pd.DataFrame, task: str) -> list[Shown]:
    """What a task stored that no table of its own has."""
    return further_tables(rows, task, without=COLUMNS_OF.get(task, ()))


def failure_table(rows: pd.DataFrame) -> Shown:
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
    return column.shown("failures", "Failed and skipped cells", failures(prepared(rows)), columns, most=MOST)


def _contest(record: Record) -> Entry:
    text = contest_text(record)
    return Entry(text, text)


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


def _reached(record: Record) -> Entry:
    return _reach(record, "seconds_to_threshold", "s")


def _reach(record: Record, name: str, unit: str) -> Entry:
    """A median over seeds with misses infinite: "not reached" where half or more missed."""
    value = record[name]
    if column.missing(value):
        return Entry(NONE, math.inf)
    return Entry("not reached" if math.isinf(value) else quantity(value, unit), float(value))


def _timed(record: Record) -> Entry:
    if column.missing(record["ratio_depth"]):
        return Entry("")
    size = size_text(record["ratio_depth"], record["ratio_width"], record["ratio_batch"])
    text = f"{size}, {record['ratio_from']}"
    return Entry(text, text)


def _k_of_n(record: Record) -> Entry:
    if not record["n"]:
        return Entry(NONE, -1.0)
    interval = between(record["rate_low"], record["rate_high"]) if gives_verdicts(record["recipe"]) else ""
    return Entry(f"{record['k']} of {record['n']} {interval}".strip(), record["k"] / record["n"])
