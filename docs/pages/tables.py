"""Tables and values of the pages that no page of a single store has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from docs.pages.committed import Study, words_of
from highway_bench.report import columns as column
from highway_bench.report.columns import Record, Shown, shown
from highway_bench.report.format import three
from highway_bench.report.results import Results
from highway_bench.report.rows import COMPARISON, CONTEST, groups, rows_of


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
