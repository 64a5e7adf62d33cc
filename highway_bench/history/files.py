"""asv's result files. They come from other machines, other versions and killed runs, so they are checked when read."""

from __future__ import annotations

import itertools
import json
import math
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from highway_bench.errors import BadInput, writing
from highway_bench.history.suite.series import SERIES
from highway_bench.provenance.former_names import is_told_apart, machine_of

MACHINE = "machine.json"
BENCHMARKS = "benchmarks.json"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")  # of a machine: it is a folder's name
RESULT_VERSION = 2  # asv 0.6's
MACHINE_VERSION = 1
NO_GPU = "none"  # the gpu of a machine's entry where the CPU computes
VALUE_COLUMNS = ("result", "stats_q_25", "stats_q_75", "stats_repeat")
FIELDS = {"commit_hash": str, "env_name": str, "date": int, "params": dict, "result_columns": list, "results": dict}

BenchmarkRow = dict[str, Any]  # a file's row of one benchmark, by column


class Point(NamedTuple):
    """One series at one commit: NaN where it is n/a. ``sd`` is the samples' standard deviation, NaN for one sample."""

    value: float
    sd: float
    samples: int


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

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda``."""
        return "cpu" if self.data["params"].get("gpu", NO_GPU) == NO_GPU else "cuda"

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
    def values(self) -> dict[str, Point | None]:
        """Every series of the file, named as asv does: ``blocks.Depths.time_step('plain', 10)``; ``None`` if it failed.

        If a benchmark failed as a whole, all its series failed.
        """
        return {
            f"{name}({', '.join(key)})" if key else name: point
            for name, row in self.rows.items()
            for key, point in _points(row)
        }

    @cached_property
    def points(self) -> dict[str, Point]:
        """Finite values by series."""
        return {series: point for series, point in self.values.items() if point and math.isfinite(point.value)}

    @cached_property
    def failures(self) -> list[str]:
        """Series that failed."""
        return [series for series, point in self.values.items() if point is None]

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


def _points(row: BenchmarkRow) -> Iterator[tuple[tuple[str, ...], Point | None]]:
    """The value of a benchmark at each combination of its parameters; asv writes null for a column without values."""
    keys = list(itertools.product(*(row.get("params") or [])))
    columns = [row.get(column) or [None] * len(keys) for column in VALUE_COLUMNS]
    for key, value, first, third, repeat in zip(keys, *columns, strict=True):
        if value is None:
            yield key, None
        elif first is None or third is None or (repeat or 0) < 2:
            yield key, Point(float(value), math.nan, repeat or 1)
        else:  # quartiles, since timings have long tails: for normal samples they are 1.349 sd apart
            yield key, Point(float(value), (third - first) / 1.349, repeat)


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ``BadInput`` for a missing or incomplete file, or other JSON."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is no complete JSON file (cut short?): {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} contains no JSON object")
    return data


def read_result(path: Path) -> Result:
    """A result file; raises ``BadInput`` for one that is cut short, of a newer schema, or not as asv writes them."""
    data = read_json(path)
    check_version(path, data, RESULT_VERSION)
    for name, kind in FIELDS.items():
        if not isinstance(data.get(name), kind):
            found = f"its {name} is {reprlib.repr(data[name])}" if name in data else f"it lacks {name}"
            raise BadInput(f"{path} is no result file of asv: {found}")
    result = Result(path, data["commit_hash"], data)
    try:
        if not isinstance(data["params"]["machine"], str):
            raise TypeError("its params name no machine")
        _ = result.machine, result.points
    except (ArithmeticError, AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is no result file of asv: {type(error).__name__}: {error}") from None
    return result


def differences(known: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """In which fields ``known`` differs from a machine's entry; empty if in none.

    Every field is part of a line's identity, so a difference would split the line.
    """
    return "; ".join(
        f"{name}={known.get(name)!r}, here {value!r}" for name, value in machine.items() if known.get(name) != value
    )


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
    """Write a file completely or not at all."""
    write_text(path, json.dumps(data, separators=(",", ":")))


def copy_file(source: Path, target: Path) -> None:
    """Copy a text file completely or not at all."""
    write_text(target, source.read_text(encoding="utf-8"))


def write_text(path: Path, text: str) -> None:
    """Write a file completely or not at all: it is renamed once it is complete.

    Raises ``BadInput`` where it cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(text.encode())
        part.replace(path)
