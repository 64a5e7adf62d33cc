"""The committed rows: those of a folder of Parquet files, by the command that measured them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pandas as pd
import torch

from highway_bench.cell import Cell
from highway_bench.execution.schedule import with_needs
from highway_bench.frames.results import Results
from highway_bench.frames.rows import Runs, prepared
from highway_bench.options import scalar_of, takes_several
from highway_bench.results import LATER_ATTEMPT
from highway_bench.results.export import join_into
from highway_bench.results.parquet import ParquetRows, parquet_files
from highway_bench.studies.reproduce.base import Conclusion, Reproduction, keys_of, reproductions
from highway_bench.studies.reproduce.request import Request
from highway_bench.studies.reproduce.running import request_for

ENDS: Final = ("final_loss", "success")
"""The metrics that further trainings follow from."""
PIXELS: Final = "mistaken_for"
"""A metric of which only pictures of data are drawn, which are no rows."""
HERE: Final = re.compile(r" --(store|out|log-file|workers)[= ]\S+")
"""Options of a command that say nothing of what it measures."""


class NotMeasured(Exception):
    """There are no rows; the message is the command that measures them."""


class Repetition(NamedTuple):
    """A reproduction with one request, which ``command`` measures, and what its rows say."""

    reproduction: Reproduction
    command: str
    conclusion: Conclusion


@dataclass(frozen=True, eq=False)
class Committed:
    """All committed rows, and the records of their runs."""

    rows: pd.DataFrame
    runs: Runs

    @classmethod
    def of(cls, folder: Path) -> Committed:
        """The rows of the Parquet file in ``folder``; of several, those of a store into which they are imported."""
        files = parquet_files([folder])
        with TemporaryDirectory() as scratch:
            if len(files) != 1:
                copytree(folder, scratch, dirs_exist_ok=True)
            one = ParquetRows(files[0] if len(files) == 1 else join_into(scratch))
            rows = one.frame()
        return cls(rows[rows["axis"].ne(LATER_ATTEMPT)], one.runs())

    @cache  # noqa: B019 (made once)
    def results(self, command: str, *tasks: str) -> Results:
        """The results of the runs of a command, by default of all ``tasks``. Raises ``NotMeasured``."""
        runs = {run: record for run, record in self.runs.items() if study_of(record) == command}
        rows = self.rows[self.rows["run_id"].isin(runs)]
        rows = rows[rows["task"].isin(tasks)] if tasks else rows
        if rows.empty:
            raise NotMeasured(" ".join(["highway-bench", command, *tasks]))
        return Results(rows, runs)

    def repetitions(self, names: Iterable[str] = reproductions) -> Iterator[Repetition]:
        """Every reproduction of ``names`` that was run, at each size, unless it is part of a larger one."""
        asked = {request: command_of(record) for record in self.runs.values() if (request := request_of(record))}
        keys = pd.Series(keys_of(self.rows.assign(threads=1)), self.rows.index)
        ends = prepared(self.rows[self.rows["metric"].isin(ENDS)], self.runs)
        for name in names:
            one = reproductions.get(name)
            mine = [request for own, request in sorted(asked, key=str) if own == name]
            sizes = {keys_in(one.known_cells(request, ends)): request for request in mine}
            for cells, request in sizes.items():
                rows = self.rows[keys.isin(cells) & self.rows["metric"].ne(PIXELS)]
                if len(rows) and not any(cells < other for other in sizes):
                    torch.set_num_threads(int(rows["threads"].max()))  # some cells have those of the machine's cores
                    yield Repetition(one, asked[name, request], one.conclude(prepared(rows, self.runs), request))


def command_of(record: Mapping[str, Any]) -> str:
    """The command of a run, without files of another machine."""
    return HERE.sub("", shlex.join(["highway-bench", *(record.get("command") or [])[1:]]))


def study_of(record: Mapping[str, Any]) -> str:
    """The name of a run's command; trainings of the former ``forecast`` are those of ``decide``."""
    _, name, *rest = [*command_of(record).split(), ""]
    return "" if "smoke" in rest else {"forecast": "decide"}.get(name, name)


def request_of(record: Mapping[str, Any]) -> tuple[str, Request] | None:
    """The reproduction that a run measured, and its request; ``None`` for another command."""
    _, command, name, *_ = [*command_of(record).split(), "", ""]
    if command != "reproduce" or name not in reproductions:
        return None
    chosen: dict[str, Any] = {"device": next(iter(record.get("machines") or ["cpu"]))}
    for one in fields(Request):
        if given := re.findall(rf"--{one.name}[= ](\S+)", command_of(record)):
            values = tuple(map(scalar_of(one), given))
            chosen[one.name] = values if takes_several(one) else values[-1]
    return name, request_for(name, chosen)


def keys_in(cells: Iterable[Cell]) -> frozenset[str]:
    """The keys of cells, and of those they need; the number of threads may be that of another machine's cores."""
    return frozenset(cell.but(threads=1).identity for cell in with_needs(cells))
