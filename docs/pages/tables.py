"""Tables that no page of a single store has, and what else templates call."""

# ruff: noqa: F401 (templates call what is imported)

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from docs.pages.committed import NotMeasured, Repetition, command_of
from highway_bench.frames.results import Results
from highway_bench.frames.rows import Runs, rows_of
from highway_bench.history.files import read_results
from highway_bench.history.lines import lines_of
from highway_bench.history.paths import Paths
from highway_bench.history.suite.series import SERIES
from highway_bench.peers.table import peer_table
from highway_bench.report.choice.costs import costs_of
from highway_bench.report.choice.lines import taken
from highway_bench.report.choice.ranking import KINDS
from highway_bench.report.columns import Record, TextTable, markdown_table, missing, quoted
from highway_bench.report.figures.overview import overview_picture
from highway_bench.report.format import NONE, between, quantity, signed, three
from highway_bench.results.parquet import FINALS, TABLE
from highway_bench.studies.decide.tables import tables as decide_tables
from highway_bench.studies.decide.transfer import transfer
from highway_bench.studies.reproduce.claims import Claim

LABELS = {one.family: one.label for one in reversed(KINDS)}
"""What people call a family."""
OF_SETTING = {"data": "", "depth": "layers", "plain_width": "wide", "steps": "steps", "optimiser": ""}
"""What a setting of the table of orders has in addition to its kind, with units."""
LONG = ["recipe", "samples", "paired", "message", "label"]
"""Columns that no file has room for."""
COUNT = re.compile(r" \(n = [\d,]+\)")


def frame(table: pd.DataFrame | TextTable) -> pd.DataFrame:
    """A table as a DataFrame, with its texts if it is for print."""
    if isinstance(table, TextTable):
        return pd.DataFrame(table.entries, columns=[head.text for head in table.heads])
    return table


def csv_text(table: pd.DataFrame | TextTable) -> str:
    """A table as the text of a file: whole numbers are exact, others have four digits."""
    own = frame(table).drop(columns=LONG, errors="ignore").dropna(axis=1, how="all")
    return own.to_csv(index=False, float_format=lambda one: f"{one:.0f}" if one.is_integer() else f"{one:.4g}")


def markdown(table: pd.DataFrame | TextTable) -> str:
    """A table in Markdown."""

    def cell(one: Any) -> str:
        if isinstance(one, str):
            return one
        return NONE if missing(one) else f"{one:,}" if isinstance(one, int) else three(one)

    own = frame(table).rename(columns=lambda name: name.removesuffix("_label").replace("_", " "))
    return "\n".join(markdown_table(list(own.columns), [list(map(cell, row)) for row in own.itertuples(index=False)]))


def pivot(table: pd.DataFrame, rows: Sequence[str], column: str, text: Callable[[Record], str]) -> pd.DataFrame:
    """One row per setting of ``rows``, and a column per value of ``column`` with the ``text`` of its row."""
    texts = table.assign(text=[text(row) for row in rows_of(table)])
    return texts.pivot_table("text", list(rows), column, aggfunc="first", sort=False).reset_index()


def runs(records: Runs) -> pd.DataFrame:
    """One row per run, oldest first."""
    table = pd.json_normalize(list(records.values()), max_level=1).assign(
        command=list(map(command_of, records.values()))
    )
    names = ["started", "finished", "command", "measured", "commit", "machines.cpu", "machines.cuda", "torch", "python"]
    return table.reindex(columns=names).sort_values("started")


def benchmarks(folder: Path) -> pd.DataFrame:
    """One row per benchmark in pytest-benchmark's files ``benchmark-*.json`` of ``folder``."""
    saved = [json.loads(path.read_bytes()) for path in sorted(folder.glob("benchmark-*.json"))]
    return pd.json_normalize(saved, "benchmarks", ["datetime", ["commit_info", "id"]])


def decided(results: Results) -> dict[str, TextTable]:
    """The tables of the protocol by name."""
    return {one.name: one for one in decide_tables(results)}


def carried(known: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Which order of connections carries over, for print."""
    table = transfer(known[TABLE], known[FINALS]).sort_values(["differs", "kind"], kind="stable")
    names = {"plain_width": "width"}
    records = [
        {
            "what differs": names.get(row["differs"], row["differs"]),
            "kind": LABELS.get(row["kind"], row["kind"]),
            "else": ", ".join(
                f"{row[name]:,} {unit}".strip() if unit else str(row[name])
                for name, unit in OF_SETTING.items()
                if name != row["differs"]
            ),
            "of": row["of"],
            "to": row["to"],
            "connections": row["connections"],
            "τ [95 %]": f"{_tau(row['tau'])} {between(row['tau_low'], row['tau_high'], _tau)}",
            "changes sides": row["change"] or NONE,
        }
        for row in rows_of(table)
    ]
    return pd.DataFrame(records)


def _tau(value: float) -> str:
    return signed(value, ".2f")


def claim_table(repetitions: Iterable[Repetition]) -> pd.DataFrame:
    """One row per claim. ``number`` is the one that decides, or the reason for none."""
    records = []
    for one in repetitions:
        for number, finding in enumerate(one.conclusion.findings, 1):
            claim, why = finding.claim, one.conclusion.incomplete or (finding.power_text if finding.claim.needs else "")
            deciding = finding.deciding or next(iter(finding.quantities), finding.note)
            records.append(
                {
                    "key": f"{one.reproduction.name}-{number}",
                    "kind": kind_of(claim),
                    "claim": claim.statement,
                    "verdict": "not measured" if why else str(finding.verdict),
                    "number": why or COUNT.sub("", str(deciding)),
                    "measured": finding.measured,
                    "power": finding.power_text,
                    "evidence": str(claim.evidence),
                    "source": claim.source,
                    "rule": claim.rule,
                    "command": one.command,
                }
            )
    return pd.DataFrame(records)


def kind_of(claim: Claim) -> str:
    """The kind of a claim that is counted apart."""
    if "lecture" in claim.source:
        return "lecture"
    return "one number" if claim.exact else "one-sided" if claim.irrefutable else "trained or timed"


def ratios(folder: Path) -> pd.DataFrame:
    """The speed of every block over commits, from asv's points in ``folder``: a step's time over the yard-stick's by
    machine, block and commit, oldest first. A machine whose name others had is left out.

    Raises ``NotMeasured`` without points."""
    every = sorted(read_results(folder), key=lambda one: (one.machine, one.data["date"]))
    records = [
        {"machine": machine, **followed.cell._asdict(), "commit": commit, "ratio": point.value}
        for machine, own in groupby((one for one in every if one.is_told_apart), key=lambda one: one.machine)
        for followed, line in lines_of(list(own), Paths.of(Path()).suite(), {}, {}).items()
        for commit, point in line
        if followed.series == SERIES[0]
    ]
    if not records:
        raise NotMeasured("highway-bench history run COMMIT")
    return pd.DataFrame(records)
