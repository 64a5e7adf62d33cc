"""The committed rows: those of a folder of Parquet files, by the command that measured them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pandas as pd
import torch

from highway_bench.cell import Cell, canonical
from highway_bench.execution.needs import with_needs
from highway_bench.options import scalar_of, takes_several
from highway_bench.report.results import Results
from highway_bench.report.rows import Runs, groups, prepared
from highway_bench.reproduce.base import Conclusion, Reproduction, reproductions
from highway_bench.reproduce.claims import Finding, Verdict
from highway_bench.reproduce.findings_page import budget
from highway_bench.reproduce.request import Request
from highway_bench.reproduce.running import request_for
from highway_bench.results import COLUMNS, FAILURES, LATER_ATTEMPT, OUTCOMES
from highway_bench.results.parquet import ParquetRows

Words = Sequence[str]
"""The words of a command of highway-bench, without its name."""

IDENTITY: Final = tuple(item.name for item in fields(Cell) if item.name != "threads")
"""What identifies a cell on every machine; the number of threads may be that of its cores."""
ENDS: Final = ("final_loss", "success")
"""The metrics that further trainings follow from."""
PIXELS: Final = "mistaken_for"
"""A metric of which only pictures of data are drawn, which are no rows."""


@dataclass(frozen=True)
class Study:
    """The rows of some runs, and the ``command`` that measures such rows. Without rows, ``results`` is ``None``."""

    name: str
    command: str
    rows: pd.DataFrame
    runs: Runs

    def only(self, column: str, *values: str) -> Study:
        """The rows with one of these values in a column."""
        return replace(self, rows=self.rows[self.rows[column].isin(values)])

    @cached_property
    def results(self) -> Results | None:
        return None if self.rows.empty else Results(self.rows, self.runs)


@dataclass(frozen=True)
class Repetition:
    """A reproduction with one request, and what its rows say; without rows, ``conclusion`` is ``None``."""

    reproduction: Reproduction
    study: Study
    budget: str
    findings: Sequence[Finding]
    conclusion: Conclusion | None = None


@dataclass(frozen=True)
class Committed:
    """All committed rows, and the records of their runs."""

    rows: pd.DataFrame
    runs: Runs

    @classmethod
    def of(cls, folder: Path) -> Committed:
        """The rows of all Parquet files in ``folder``; none without files.

        Of a cell that several runs measured, the newest result counts, and neither a failure nor a skip replaces one,
        as in a store into which the files are imported."""
        files = [ParquetRows(path) for path in sorted(folder.rglob("*.parquet"))]
        frames = [one.frame() for one in files]
        rows = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))
        rows = rows[rows["axis"].ne(LATER_ATTEMPT)]
        outcomes = rows.assign(ended=rows["status"].isin(OUTCOMES), failed=rows["status"].isin(FAILURES))
        attempts = outcomes.groupby(["digest", "run_id"])[["ended", "failed", "time_utc"]].max()
        attempts["whole"] = attempts["ended"] & ~attempts["failed"]
        newest = attempts.sort_values(["ended", "whole", "time_utc"]).groupby("digest").tail(1).index
        chosen = pd.MultiIndex.from_frame(rows[["digest", "run_id"]]).isin(newest)
        return cls(rows[chosen], {run: record for one in files for run, record in one.runs().items()})

    def study(self, name: str, command: str, measures: Callable[[Words], bool], *tasks: str) -> Study:
        """The rows of the runs whose command ``measures`` accepts, by default of all ``tasks``."""
        chosen = {run for run, record in self.runs.items() if measures(words_of(record))}
        rows = self.rows[self.rows["run_id"].isin(chosen)]
        return self._with_runs(name, command, rows[rows["task"].isin(tasks)] if tasks else rows)

    def repetitions(self, names: Collection[str] | None = None) -> list[Repetition]:
        """Every reproduction of ``names``, or of all, at each size at which it was run, or else at its default size
        without rows.

        A request whose cells are all part of a larger one is left out."""
        asked = {request_of(words_of(record), record) for record in self.runs.values()}
        sizes: dict[str, dict[frozenset[str], Request]] = {
            name: {} for name in reproductions if names is None or name in names
        }
        for name, request in sorted(filter(None, asked), key=str):
            if name not in sizes:
                continue
            sizes[name][identities(self.known_cells(reproductions.get(name), request))] = request
        known = identity_of(self.rows)
        repetitions = []
        for name, requests in sizes.items():
            largest = {cells: one for cells, one in requests.items() if not any(cells < other for other in requests)}
            for cells, request in (largest or {frozenset(): Request(device="cpu")}).items():
                repetitions.append(self._repetition(reproductions.get(name), request, self.rows[known.isin(cells)]))
        return repetitions

    def known_cells(self, reproduction: Reproduction, request: Request) -> list[Cell]:
        """The cells of a reproduction, with those that follow from committed rows."""
        return reproduction.known_cells(request, self._trainings)

    @cached_property
    def _trainings(self) -> pd.DataFrame:
        """The rows of reproductions that say how trainings ended, prepared as for a report."""
        ran = {run for run, record in self.runs.items() if words_of(record)[:1] == ["reproduce"]}
        ends = self.rows[self.rows["metric"].isin(ENDS) & self.rows["run_id"].isin(ran)]
        return ends if ends.empty else prepared(ends, self.runs)

    def _repetition(self, reproduction: Reproduction, request: Request, rows: pd.DataFrame) -> Repetition:
        study = self._with_runs(reproduction.name, command_of(reproduction.name, request), rows)
        if rows.empty:
            claims = reproduction.claims(request)
            findings = [Finding(claim=claim, verdict=Verdict.NOT_TESTABLE, why="not measured") for claim in claims]
            return Repetition(reproduction, study, "", findings)
        torch.set_num_threads(int(rows["threads"].max()))  # some cells have as many threads as the machine has cores
        drawn = prepared(rows[rows["metric"].ne(PIXELS)], study.runs)
        conclusion = reproduction.conclude(drawn, request)
        ran = budget(list(with_needs(self.known_cells(reproduction, request))))
        return Repetition(reproduction, study, ran, conclusion.findings, conclusion)

    def _with_runs(self, name: str, command: str, rows: pd.DataFrame) -> Study:
        present = set(rows["run_id"])
        return Study(name, command, rows, {run: record for run, record in self.runs.items() if run in present})


def words_of(record: Mapping[str, Any]) -> Words:
    """The words of a run's command after the program's name, which may be a path."""
    return list(record.get("command") or [""])[1:]


def profile_of(words: Words) -> str:
    """The profile that a command measures; empty for another command than ``run``."""
    if not words or words[0] != "run":
        return ""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default="standard")
    return str(parser.parse_known_args(list(words[1:]))[0].profile)


def request_of(words: Words, record: Mapping[str, Any]) -> tuple[str, Request] | None:
    """The reproduction that a run measured, and its request; ``None`` for another command."""
    if len(words) < 2 or words[0] != "reproduce" or words[1] not in reproductions:
        return None
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in fields(Request):
        action = "append" if takes_several(option) else "store"
        parser.add_argument(f"--{option.name}", type=scalar_of(option), action=action)
    given = vars(parser.parse_known_args(list(words[2:]))[0])
    given["device"] = given["device"] or next(iter(record.get("machines") or ["cpu"]))
    return words[1], request_for(words[1], {key: tuple(value) if isinstance(value, list) else value
                                            for key, value in given.items()})  # fmt: skip


def command_of(name: str, request: Request) -> str:
    """The command that measures a reproduction with ``request``."""
    words = ["highway-bench", "reproduce", name]
    for option in fields(Request):
        value = getattr(request, option.name)
        for each in value if isinstance(value, tuple) else (value,):
            words += [] if each in (None, "cpu") else [f"--{option.name}", str(each)]
    return shlex.join(words)


def identities(cells: Iterable[Cell]) -> frozenset[str]:
    """Cells, and those they need, by what identifies them on every machine."""
    return frozenset(
        canonical({name: value for name, value in cell.columns().items() if name in IDENTITY})
        for cell in with_needs(cells)
    )


def identity_of(rows: pd.DataFrame) -> pd.Series:
    """What identifies the cell of each row."""
    cells: Iterable[dict[str, Any]] = (values for values, _ in groups(rows, ["digest", *IDENTITY]))
    known = {values.pop("digest"): canonical(values) for values in cells}
    return rows["digest"].map(known)
