"""asv's result files: read with care, for they come from other machines, other versions and killed runs."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from highway_bench.errors import BadInput

MACHINE = "machine.json"
BENCHMARKS = "benchmarks.json"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")  # of a machine: it is a folder's name
RESULT_VERSION = 2  # asv 0.6's
MACHINE_VERSION = 1


class CutShort(BadInput):
    """A file that a killed run, or a full disk, left unfinished."""


class Point(NamedTuple):
    """One series at one commit. ``sd`` is the samples' spread about ``value``, NaN where there was one sample only."""

    value: float
    sd: float
    samples: int


@dataclass(frozen=True)
class Result:
    """One result file: what one machine measured at one commit."""

    path: Path
    commit: str
    data: dict[str, Any]

    @property
    def machine(self) -> str:
        return str(self.data["params"]["machine"])

    @property
    def started(self) -> int:
        """When the newest of its values was measured, in milliseconds; 0 where it does not say."""
        columns = self.data["result_columns"]
        if "started_at" not in columns:
            return 0
        at = columns.index("started_at")
        return max((row[at] or 0 for row in self.data["results"].values() if len(row) > at), default=0)

    @cached_property
    def points(self) -> dict[str, Point]:
        """Finite values by series, named as asv names them: ``blocks.Depths.time_step('highway', 10)``."""
        found: dict[str, Point] = {}
        columns = self.data["result_columns"]
        for name, row in self.data["results"].items():
            cells = dict(zip(columns, row, strict=False))
            values = cells.get("result") or []
            places = itertools.product(*(cells.get("params") or []))
            low, high, count = (cells.get(f"stats_{name}") or [None] * len(values)
                                for name in ("q_25", "q_75", "repeat"))
            for place, value, first, third, repeat in zip(places, values, low, high, count, strict=False):
                if isinstance(value, int | float) and math.isfinite(value):
                    # Quartiles, since timings have long tails: for normal samples they are 1.349 sd apart.
                    sd = (third - first) / 1.349 if None not in (first, third) and (repeat or 0) > 1 else math.nan
                    key = f"{name}({', '.join(place)})" if place else name
                    found[key] = Point(float(value), sd, int(repeat or 1))
        return found

    @cached_property
    def places(self) -> set[str]:
        """Every series that the file has a place for, with a value or without."""
        found = set()
        for name, row in self.data["results"].items():
            params = dict(zip(self.data["result_columns"], row, strict=False)).get("params") or []
            found |= {f"{name}({', '.join(place)})" if place else name for place in itertools.product(*params)}
        return found

    @cached_property
    def failures(self) -> list[str]:
        """Series that failed, and benchmarks that failed as a whole (asv writes null; n/a is NaN)."""
        found = []
        for name, row in self.data["results"].items():
            cells = dict(zip(self.data["result_columns"], row, strict=False))
            values, params = cells.get("result"), cells.get("params") or []
            if values is None:
                found.append(name)
            elif None in values:
                found += [f"{name}({', '.join(place)})" if place else name
                          for place, value in zip(itertools.product(*params), values, strict=False) if value is None]
        return found

    def identity(self, series: str) -> tuple[object, ...]:
        """What a series' line is of: its version, python and requirements. A new torch starts a new line."""
        row = self.data["results"].get(series.partition("(")[0], [])
        version = dict(zip(self.data["result_columns"], row, strict=False)).get("version")
        return version, self.data["params"].get("python"), str(self.data.get("requirements"))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; raises ``CutShort`` where the file is no whole JSON, ``BadInput`` where it is missing or something
    else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CutShort(f"{path} is no whole JSON file (cut short?): {error}") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} holds no JSON object")
    return data


def read_result(path: Path) -> Result:
    """A result file; raises ``BadInput`` for one that is cut short, of a newer schema, or lacks what it must have."""
    data = read_json(path)
    check_version(path, data, RESULT_VERSION)
    missing = [name for name in ("commit_hash", "params", "result_columns", "results", "env_name", "date")
               if name not in data]
    if missing or "machine" not in data["params"]:
        raise BadInput(f"{path} is no result file of asv: it lacks {', '.join(missing) or 'the machine'}")
    return Result(path, str(data["commit_hash"]), data)


def read_machine(folder: Path, *, renamed: bool = False) -> dict[str, Any]:
    """The machine entry of a folder of results; raises ``BadInput`` where it is missing, broken or newer, or names
    another machine than the folder, unless that may have been ``renamed``."""
    path = folder / MACHINE
    if not path.is_file():
        raise BadInput(f"{folder} has results but no {MACHINE}: without it nobody knows what was measured on")
    data = read_json(path)
    check_version(path, data, MACHINE_VERSION)
    data.pop("version", None)
    if not NAME.match(str(data.get("machine"))):
        raise BadInput(f"{path} names no machine: {data.get('machine')!r}")
    if data["machine"] != folder.name and not renamed:
        raise BadInput(f"{path} says machine {data.get('machine')!r}, its folder {folder.name!r}")
    return data


def check_version(path: Path, data: dict[str, Any], known: int) -> None:
    """Raise ``BadInput`` for a file whose schema this version does not read."""
    found = data.get("version")
    if found != known:
        relation = "newer than" if isinstance(found, int) and found > known else "not"
        raise BadInput(f"{path} is of asv's schema {found!r}, {relation} the {known} that is read here")


def result_paths(folder: Path) -> list[Path]:
    """The result files of one machine's folder, sorted."""
    return sorted(path for path in folder.glob("*.json") if path.name not in (MACHINE, BENCHMARKS))


def machine_folders(results: Path) -> list[Path]:
    """The machines' folders in a folder of results, sorted."""
    if not results.is_dir():
        return []
    return sorted(path for path in results.iterdir() if path.is_dir() and (result_paths(path) or
                                                                           (path / MACHINE).exists()))


def read_results(results: Path) -> Iterator[Result]:
    """Every result of every machine."""
    for folder in machine_folders(results):
        read_machine(folder)
        for path in result_paths(folder):
            yield read_result(path)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write whole or not at all: the file is put in its place when it is complete."""
    _put(path, json.dumps(data, separators=(",", ":")).encode())


def copy_file(source: Path, target: Path) -> None:
    """Copy whole or not at all."""
    _put(target, source.read_bytes())


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
