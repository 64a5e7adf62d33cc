"""asv's result files. They come from other machines, other versions and killed runs, so they are checked when read."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from highway_bench.errors import BadInput, writing
from highway_bench.history.suite.series import SERIES
from highway_bench.history.validate import faults
from highway_bench.provenance.former_names import is_told_apart, machine_of

MACHINE = "machine.json"
BENCHMARKS = "benchmarks.json"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")  # of a machine: it is a folder's name
RESULT_VERSION = 2  # asv 0.6's
MACHINE_VERSION = 1
NO_GPU = "none"  # the gpu of a machine's entry where the CPU computes
VALUE_COLUMNS = ("result", "stats_q_25", "stats_q_75", "stats_repeat")

BenchmarkRow = dict[str, Any]  # a file's row of one benchmark, by column


class Point(NamedTuple):
    """One series at one commit. ``sd`` is the samples' standard deviation, NaN for a single sample."""

    value: float
    sd: float
    samples: int


class SeriesValue(NamedTuple):
    """One series in a file. Its value is NaN where it is n/a, and ``None`` where it failed."""

    series: str
    value: float | None
    first: float | None  # quartiles
    third: float | None
    repeat: int | None

    @property
    def point(self) -> Point | None:
        """The value with its spread, if it is finite."""
        if self.value is None or not math.isfinite(self.value):
            return None
        if self.first is None or self.third is None or (self.repeat or 0) < 2:
            return Point(float(self.value), math.nan, self.repeat or 1)
        # Quartiles, since timings have long tails: for normal samples they are 1.349 sd apart.
        return Point(float(self.value), (self.third - self.first) / 1.349, self.repeat or 1)


@dataclass(frozen=True)
class Result:
    """One result file: what one machine measured at one commit."""

    path: Path
    commit: str
    data: dict[str, Any]

    @cached_property
    def machine(self) -> str:
        """The machine that measured it, under its present name as far as what is on record tells it."""
        return machine_of(str(self.data["params"]["machine"]), {"started": self.started})

    @cached_property
    def started(self) -> str:
        """When it was measured, in UTC; empty where the file does not say."""
        times = [row["started_at"] for row in self.rows.values() if row.get("started_at")]
        return datetime.fromtimestamp(min(times) / 1000, UTC).isoformat() if times else ""

    @property
    def is_told_apart(self) -> bool:
        """Whether it is known which machine measured it; if not, nothing is compared with it."""
        return is_told_apart(self.machine, self.data["params"])

    @cached_property
    def rows(self) -> dict[str, BenchmarkRow]:
        """Each benchmark's row by column; asv leaves out the last columns of a row if they are empty."""
        columns = self.data["result_columns"]
        return {name: dict(zip(columns, row, strict=False)) for name, row in self.data["results"].items()}

    @cached_property
    def values(self) -> list[SeriesValue]:
        """Every series of the file, named as asv does: ``blocks.Depths.time_step('plain', 10)``.

        If a benchmark failed as a whole, all its series failed.
        """
        return [
            SeriesValue(f"{name}({', '.join(key)})" if key else name, *(row[column] for column in VALUE_COLUMNS))
            for name, whole in self.rows.items()
            for key, row in by_parameters(whole, VALUE_COLUMNS).items()
        ]

    @cached_property
    def points(self) -> dict[str, Point]:
        """Finite values by series."""
        return {value.series: point for value in self.values if (point := value.point) is not None}

    @cached_property
    def failures(self) -> list[str]:
        """Series that failed."""
        return [value.series for value in self.values if value.value is None]

    @cached_property
    def is_current(self) -> bool:
        """Whether the point was measured for all of today's series."""
        benchmarks = {name.rpartition(".")[2] for name in self.rows}
        return all(series.benchmark in benchmarks for series in SERIES if series.quick)

    @cached_property
    def is_full(self) -> bool:
        """Whether the point has values that only full points have."""
        full_only = tuple(f".{series.benchmark}" for series in SERIES if not series.quick)
        return self.is_current and any(name.partition("(")[0].endswith(full_only) for name in self.points)

    def identity(self, series: str) -> tuple[object, ...]:
        """What the points of a line have in common: version, python and requirements. A new torch starts a new line."""
        version = self.rows.get(series.partition("(")[0], {}).get("version")
        return version, self.data["params"].get("python"), str(self.data.get("requirements"))


def by_parameters(row: BenchmarkRow, columns: Iterable[str]) -> dict[tuple[str, ...], BenchmarkRow]:
    """The values of ``columns`` at each combination of a benchmark's parameters.

    asv writes null for a column that is null everywhere.
    """
    combinations = list(itertools.product(*(row.get("params") or [])))
    values = {column: row.get(column) or [None] * len(combinations) for column in columns}
    return {key: {column: values[column][number] for column in values} for number, key in enumerate(combinations)}


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ``BadInput`` for a missing or incomplete file, or other JSON."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_int=_whole_or_infinite)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is no complete JSON file (cut short?): {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} contains no JSON object")
    return data


def read_result(path: Path) -> Result:
    """A result file; raises ``BadInput`` for one that is cut short, of a newer schema, or lacks required fields."""
    data = read_json(path)
    check_version(path, data, RESULT_VERSION)
    fault = next(faults(data), None)
    if fault:
        raise BadInput(f"{path} is no result file of asv: {fault}")
    return Result(path, str(data["commit_hash"]), data)


def check_machine(result: Result, machine: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` if a result's machine fields differ from the ``machine``'s entry.

    Every field is part of a line's identity, so a difference would split the line.
    """
    params = result.data["params"]
    other = [
        f"{name}={params.get(name)!r}, there {value!r}" for name, value in machine.items() if params.get(name) != value
    ]
    if other:
        raise BadInput(f"{result.path} is of another machine than its {MACHINE} says: {'; '.join(other)}")


def read_machine(folder: Path, *, renamed: bool = False) -> dict[str, Any]:
    """The machine entry of a folder of results.

    Raises ``BadInput`` where it is missing, broken or newer, or names another machine than the folder, unless the
    folder may have been ``renamed``.
    """
    path = folder / MACHINE
    if not path.is_file():
        raise BadInput(f"{folder} has results but no {MACHINE}: without it the hardware is unknown")
    data = read_json(path)
    check_version(path, data, MACHINE_VERSION)
    data.pop("version", None)
    if not (isinstance(data.get("machine"), str) and NAME.match(data["machine"])):
        raise BadInput(f"{path} names no machine: {data.get('machine')!r}")
    if data["machine"] != folder.name and not renamed:
        raise BadInput(f"{path} says machine {data.get('machine')!r}, its folder {folder.name!r}")
    return data


def check_version(path: Path, data: dict[str, Any], known: int) -> None:
    """Raise ``BadInput`` for a file with a schema that this version does not read."""
    version = data.get("version")
    if version != known:
        relation = "newer than" if isinstance(version, int) and version > known else "not"
        raise BadInput(f"{path} is of asv's schema {version!r}, {relation} {known}, which this version reads")


def result_paths(folder: Path) -> list[Path]:
    """The result files of one machine's folder, sorted."""
    return sorted(path for path in folder.glob("*.json") if path.name not in (MACHINE, BENCHMARKS))


def machine_folders(results: Path) -> list[Path]:
    """The machines' folders in a folder of results, sorted."""
    if not results.is_dir():
        return []
    return sorted(
        path for path in results.iterdir() if path.is_dir() and (result_paths(path) or (path / MACHINE).exists())
    )


def read_results(results: Path) -> Iterator[Result]:
    """Every result of every machine."""
    for folder in machine_folders(results):
        read_machine(folder)
        for path in result_paths(folder):
            yield read_result(path)


def use_present_names(results: Path) -> None:
    """Move the points in a folder of points to the machines that measured them, from those of former names."""
    for result in [one for one in read_results(results) if one.machine != one.path.parent.name]:
        folder, renamed = results / result.machine, {"machine": result.machine}
        write_json(folder / MACHINE, read_json(result.path.with_name(MACHINE)) | renamed)
        write_json(folder / result.path.name, result.data | {"params": result.data["params"] | renamed})
        result.path.unlink()


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a file completely or not at all: it is renamed once it is complete. Raises ``BadInput`` where it cannot
    be written."""
    write_text(path, json.dumps(data, separators=(",", ":")))


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    _put(path, text.encode())


def copy_file(source: Path, target: Path) -> None:
    """Copy a file completely or not at all."""
    _put(target, source.read_bytes())


def _put(path: Path, content: bytes) -> None:
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)


def _whole_or_infinite(digits: str) -> float:
    """A whole number of a JSON file; infinite if no float is as large."""
    return int(digits) if math.isfinite(float(digits)) else float(digits)
