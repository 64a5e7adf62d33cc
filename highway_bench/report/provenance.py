"""The provenance of a report's numbers: runs, machines and versions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from highway_bench.frames.rows import Runs
from highway_bench.results.schema import DESCRIBED

NOT_LISTED: Final = (*DESCRIBED, "digests", "requested")
"""Parts of a run's record that are not listed: the page shows them elsewhere, or they are thousands of digests."""

EMPTY: Final[tuple[object, ...]] = (None, "", {}, [])


def provenance_of(rows: pd.DataFrame, runs: Runs) -> list[dict[str, Any]]:
    """The record of every run that has rows, oldest first, with facts from its rows added."""
    listed: list[dict[str, Any]] = []
    began = rows.groupby("run_id", sort=False)["time_utc"].min().sort_values(kind="stable", na_position="first")
    for run_id in began.index:
        part = rows[rows["run_id"] == run_id]
        record = {name: value for name, value in runs.get(run_id, {}).items() if name not in NOT_LISTED}
        command = record.pop("command", None)
        facts: dict[str, str] = {}
        if command:
            facts["command"] = shlex.join(map(str, command)) if isinstance(command, list) else str(command)
        for column in ("machine", "gpu", "commit", "torch", "threads", "task_version", "protocol"):
            distinct = part[column].dropna().unique()
            values = sorted(f"{value:g}" if isinstance(value, float) else str(value) for value in distinct)
            if values:
                facts[column.replace("_", " ")] = ", ".join(values)
        facts |= {name: _flat(value) for name, value in record.items() if value not in EMPTY and name not in facts}
        times = part["time_utc"].dropna()
        facts |= {"results": f"{len(part):,} rows" + (f", {times.min()} to {times.max()}" if len(times) else "")}
        listed.append({"id": run_id, "facts": list(facts.items())})
    return listed


def _flat(value: Any) -> str:
    """A value of a run's record in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_flat(item)}" for name, item in value.items() if item not in EMPTY)
    if isinstance(value, (list, tuple)):
        return " ".join(_flat(item) for item in value)
    return str(value)
