"""Tables and values of the pages that no page of a single store has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from docs.pages.committed import Study, words_of
from highway_bench.measure.paired import ALPHA
from highway_bench.measure.statistics import IntervalEstimate, t_interval
from highway_bench.report import columns as column
from highway_bench.report.columns import Record, Shown, shown
from highway_bench.report.format import between, listed, three, times
from highway_bench.report.labels import data_name, title_of
from highway_bench.report.ratio import is_decided
from highway_bench.report.results import Results
from highway_bench.report.rows import COMPARISON, CONTEST, groups, rows_of, without_start
from highway_bench.report.tables.answer import NOT_MEASURED, TIED, TIES, Answer
from highway_bench.success.ladder import TRAINS


def by_block(
    name: str, title: str, results: Results, table: pd.DataFrame, text: Callable[[Record], str], *, note: str = ""
) -> Shown:
    """One row per comparison of ``table``, and a column per block with the ``text`` of its row."""
    settings = ["family_label", "depth"]
    settings += [one for one in COMPARISON if one not in settings and len(table[one].drop_duplicates()) > 1]
    records = [
        setting | {row["block"]: text(row) for row in rows_of(part)} for setting, part in groups(table, COMPARISON)
    ]
    columns = [column.words(one, one.removesuffix("_label").replace("_", " ")) for one in settings]
    columns += [column.words(block, block) for block in results.about.block_order(table["block"])]
    return shown(name, title, pd.DataFrame(records), columns, note=note)


def without_lone_blocks(study: Study) -> Study:
    """``study`` without the trainings of contests that have one block only."""
    if study.results is None:
        return study
    rows = study.results.rows
    anywhere = [name for name in CONTEST if name not in ("machine", "machine_label")]
    contests = groups(rows[rows["task"] == "trainability"], anywhere)
    alone = [part.index for _, part in contests if len(set(part["label"])) == 1]
    return replace(study, rows=study.rows.drop(pd.Index([]).append(alone)))


def in_short(results: Results) -> Iterator[str]:
    """For each contest that was measured, what to use at each depth, at which cost, and with which caveat."""
    higher: dict[str, list[AccuracyGap]] = {}
    for gap in accuracy_gaps(results):
        if gap.is_higher:
            higher.setdefault(gap.contest, []).append(gap)
    measured = [answer for answer in results.answer() if answer.verdict != NOT_MEASURED]
    for family, group in groupby(measured, key=lambda answer: answer.family):
        own = list(group)
        depths: dict[str, list[str]] = {}
        for answer in own:
            depths.setdefault(choice(answer), []).append(str(answer.depths[0]))
        sentences = ["; ".join(f"depth {listed(at)} {text}" for text, at in depths.items()) + "."]
        ratios = {
            str(answer.depths[0]): cost["ratio"]
            for answer in own
            for cost in answer.costs
            if cost["block"] == answer.best and is_decided(cost["ratio"], cost["ratio_low"], cost["ratio_high"])
        }
        if ratios:
            low, high = times(min(ratios.values())), times(max(ratios.values()))
            least_to_most = low if low == high else f"{low} to {high}"
            at = "" if len(ratios) == len(own) else f" at depth {listed([*ratios])}"
            sentences.append(f"A step of the first named takes {least_to_most} plain's{at} (intervals below).")
        sentences += [
            f"At depth {gap.depth} `{gap.best}` has a higher test accuracy than `{gap.lowest_loss}`, by "
            f"{three(gap.points.value)} {between(gap.points.low, gap.points.high)} points ({gap.points.n} seeds, "
            "one test set)."
            for gap in higher.get(family, ())
        ]
        yield f"**{family}**: {' '.join(sentences)}"


def accuracy_tally(results: Results) -> str:
    """At how many depths a connection has a measurably higher test accuracy than that of the lowest loss."""
    gaps = list(accuracy_gaps(results))
    others = [gap for gap in gaps if gap.best != gap.lowest_loss]
    higher = sum(gap.is_higher for gap in gaps)
    return (
        f"another connection than the one of the lowest loss is first at {len(others)} of {len(gaps)} depths of the "
        f"families, and measurably ahead of it at {higher}"
    )


def equations(results: Results) -> str:
    """The equations of plain and of the connections to use, in a sentence."""
    used = [without_start(block).partition(" ")[0] for answer in results.answer() for block in answer.use]
    known = {name: results.about.blocks.get(name, {}).get("equation") for name in [results.about.baseline, *used]}
    return "; ".join(f"`{name}` {equation}" for name, equation in known.items() if equation)


def choice(answer: Answer) -> str:
    """What to use by an answer, in a phrase."""
    if not answer.use:
        return f"none can be named ({answer.reason})"
    if len(answer.use) > TIES:
        return f"`{answer.best}` has the lowest loss of {len(answer.use)} that are tied"
    names = listed([f"`{block}`" for block in answer.use], last="or")
    tied = " (tied)" if answer.verdict == TIED else ""
    return names + tied + (" (of those judged)" if answer.not_judged else "")


class AccuracyGap(NamedTuple):
    """At one depth of a contest, the block of the highest mean test accuracy of those that train, and by how many
    points it is above the block of the lowest training loss. Seeds with which one of them diverged do not count. The
    interval is corrected for the choice among these blocks (Bonferroni)."""

    contest: str
    depth: int
    lowest_loss: str
    best: str
    points: IntervalEstimate

    @property
    def is_higher(self) -> bool:
        """Whether the interval of the difference lies above 0."""
        return self.points.low > 0


def accuracy_gaps(results: Results) -> Iterator[AccuracyGap]:
    """The test accuracies at every depth at which several blocks train."""
    contests, runs = results.contests(), list(groups(results.training_runs(), CONTEST))
    every = [contest for contest, _ in contests]
    lowest = {(answer.family, *answer.depths): answer.best for answer in results.answer() if answer.best}
    for contest, part in contests:
        single = next(of for setting, of in runs if setting == contest)
        name = title_of(contest, every, data_name)
        for depth in sorted(set(part["depth"])):
            rungs = part[part["depth"].eq(depth) & part["verdict"].eq(TRAINS) & part["test_accuracy"].notna()]
            if len(rungs) < 2:
                continue
            own = single[single["depth"].eq(depth) & single["block"].isin(rungs["block"])]
            seeds = 100 * own.pivot_table(index="seed", columns="block", values="test_accuracy").dropna()
            if seeds.empty:
                continue
            best, first = str(seeds.mean().idxmax()), lowest[name, int(depth)]
            confidence = 1 - ALPHA / (len(rungs) - 1)
            yield AccuracyGap(name, int(depth), first, best, t_interval(seeds[best] - seeds[first], confidence))


def provenance(studies: Iterable[Study]) -> Shown:
    """One row per command, commit and machine: the runs behind a page, and how idle the machine was."""
    records: list[dict[str, Any]] = []
    for study in studies:
        for run_id, rows in study.rows.groupby("run_id"):
            record = study.runs.get(str(run_id), {})
            waited = rows.loc[rows["metric"].eq("waited") & rows["axis"].fillna("").eq(""), "value"]
            records.append(
                {
                    "command": " ".join(["highway-bench", *without_paths(words_of(record))]),
                    "python": record.get("python"),
                    "commit": re.sub(r"\b([0-9a-f]{8})[0-9a-f]+", r"\1", all_of(rows["commit"])),
                    **{name: all_of(rows[name]) for name in ("machine", "torch", "protocol")},
                    "day": str(rows["time_utc"].min())[:10],
                    "last": str(rows["time_utc"].max())[:10],
                    "rows": len(rows),
                    "waited": waited.astype("float64").median(),
                }
            )
    alike = ["command", "commit", "machine", "torch", "python", "protocol"]
    merged = [
        setting
        | {"runs": len(part), "rows": part["rows"].sum(), "waited": part["waited"].median()}
        | {"days": " to ".join(sorted({part["day"].min(), part["last"].max()}))}
        for setting, part in groups(pd.DataFrame(records, columns=[*alike, "day", "last", "rows", "waited"]), alike)
    ]
    columns = [
        column.computed("command", lambda row: f"`{row['command']}`", is_number=False),
        column.words("commit", "commit"),
        column.words("machine", "machine"),
        column.words("torch", "torch"),
        column.words("python", "Python"),
        column.words("protocol", "protocol"),
        column.words("days", "days"),
        column.whole("runs", "runs"),
        column.whole("rows", "rows used here"),
        column.percent("waited", "steps waited for a core"),
    ]
    table = pd.DataFrame(merged)
    timed = merged and table["waited"].notna().any()
    waits = "Steps wait for a core if other programs use it: the median share of the wall time, where steps were timed."
    return shown("provenance", "Measured by", table, columns, note=waits if timed else "")


def all_of(values: pd.Series) -> str:
    """The distinct ``values``, joined by commas."""
    return ", ".join(sorted(map(str, values.dropna().unique())))


def without_paths(words: Sequence[str]) -> list[str]:
    """The words of a command without its store and other files, which are those of another machine."""
    chosen: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if not {before, word.partition("=")[0]} & {"--store", "--out", "--log-file"}:
            chosen.append(word)
    return chosen


def benchmark_table(folder: Path) -> Shown:
    """One row per benchmark in pytest-benchmark's files ``benchmark-*.json`` of ``folder``."""
    records = []
    for path in sorted(folder.glob("benchmark-*.json")):
        saved = json.loads(path.read_text(encoding="utf-8"))
        for one in saved["benchmarks"]:
            about = {"group": one["group"], "name": one["name"], "extra": extra_text(one["extra_info"])}
            about |= {"rounds": one["stats"]["rounds"]}
            about |= {"machine": saved["machine_info"]["cpu"].get("brand_raw")}
            about |= {"commit": saved["commit_info"]["id"][:8], "day": saved["datetime"][:10]}
            stats = {"median": one["stats"]["median"], "low": one["stats"]["q1"], "high": one["stats"]["q3"]}
            records.append(about | stats)
    columns = [
        column.words("group", "group"),
        column.words("name", "benchmark"),
        column.spread("median", "median [quartiles]", "low", "high", "s"),
        column.whole("rounds", "rounds"),
        column.words("extra", "also"),
        column.words("machine", "processor"),
        column.words("commit", "commit"),
        column.words("day", "day"),
    ]
    return shown("benchmarks", "The tool's own cost", pd.DataFrame(records), columns)


def extra_text(value: Any) -> str:
    """What a benchmark stored besides its times, as text."""
    if isinstance(value, dict):
        return "; ".join(f"{name} {extra_text(item)}" for name, item in value.items())
    return three(value) if isinstance(value, float) else str(value)


def peer_spans(table: pd.DataFrame) -> str:
    """The range of our time over each peer's, over all sizes and modes, in a sentence."""
    decided = table[table["verdict"].ne("undecided") & table["ratio"].notna()]
    spans = [(peer, part["ratio"].min(), part["ratio"].max()) for peer, part in decided.groupby("peer")]
    return "; ".join(f"`{peer}` {three(least)} to {three(most)}" for peer, least, most in spans)


def duration_table(runs: Mapping[str, Mapping[str, Any]]) -> Shown:
    """One row per command: the cells that its runs measured, and the hours that they took."""
    records = []
    for record in runs.values():
        if record.get("finished"):
            begin, end = (pd.Timestamp(record[name]) for name in ("started", "finished"))
            words = " ".join(["highway-bench", *without_paths(words_of(record))])
            hours = (end - begin).total_seconds() / 3600
            records.append({"command": words, "cells": record.get("measured"), "hours": hours})
    table = pd.DataFrame(records, columns=["command", "cells", "hours"])
    table = table.groupby("command", sort=True).sum().reset_index()
    columns = [
        column.computed("command", lambda row: f"`{row['command']}`", is_number=False),
        column.whole("cells", "cells measured"),
        column.number("hours", "hours"),
    ]
    note = "Hours from the start of a run to its end, summed over the runs of a command."
    return shown("durations", "How long the runs took", table, columns, note=note)
