"""How a store of a million rows is used: seconds until a run knows what is left, and until the page is written.

    python -m benches.proofs.large_store docs/data/NAME.parquet

The store holds the rows of a file in ``docs/data``, and copies of its cells with other seeds, until it has ``--rows``.
``NAME`` is best the file of a run of ``standard``. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

from highway_bench.execution.schedule import Schedule, with_needs
from highway_bench.plan.plan import Plan
from highway_bench.results import Store
from highway_bench.results.export import import_rows

SEEDS = 1000  # between two copies of a cell


def fill(path: Path, source: Path, least: int) -> int:
    """Write a store of at least so many rows; their number."""
    import_rows(path, source)
    with Store(path) as store:
        cells: dict[str, list[dict[str, Any]]] = {}
        for row in store.rows():
            cells.setdefault(row["digest"], []).append(row)
        written = sum(map(len, cells.values()))
        copies = ((copy, *cell) for copy in count(1) for cell in cells.items())
        while written < least:
            copy, digest, rows = next(copies)
            other = hashlib.sha256(f"{digest} {copy}".encode()).hexdigest()[: len(digest)]
            store.put(other, [row | {"digest": other, "seed": row["seed"] + SEEDS * copy} for row in rows])
            written += len(rows)
    return written


def seconds_to_resume(path: Path) -> tuple[float, int, int]:
    """Seconds in which a run of ``standard`` opens the store and knows which cells it has; these, and all."""
    cells = Plan.of("standard").cells
    began = time.perf_counter()
    with Store(path) as store:
        schedule = Schedule(store)
        schedule.add(with_needs(cells))
        schedule.ready()
        seconds = time.perf_counter() - began
    return seconds, sum(item.stored for item in schedule.items.values()), len(schedule.items)


def seconds_to_report(path: Path) -> float:
    """Seconds in which ``report`` writes the page and its figures."""
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "highway_bench",
        "report",
        "--store",
        str(path),
        "--out",
        str(path.parent / "page"),
    ]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return time.perf_counter() - began


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        rows = fill(path, given.file, given.rows)
        resume, stored, cells = seconds_to_resume(path)
        report = seconds_to_report(path)
        line = {
            "rows": rows,
            "mib": round(path.stat().st_size / 2**20),
            "cells_stored": stored,
            "cells": cells,
            "seconds_to_resume": round(resume, 2),
            "seconds_to_report": round(report, 1),
            "report_mib": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10),
        }
    print(json.dumps(line))  # noqa: T201


if __name__ == "__main__":
    main()
