"""Rows of a few cells, and a store for them."""

import json

import pytest

from highway_bench.results import Store, row

EARLY, MIDDLE, LATE = (f"2026-01-0{day}T00:00:00" for day in (1, 2, 3))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "s") as opened:
        yield opened


def some(digest, *values, **columns):
    """The rows of a cell with one metric at several steps."""
    common = {"digest": digest, "metric": "time", "axis": "step", "time_utc": EARLY, "status": "ok", "run_id": "r"}
    steps = [
        {"index": float(index), "value": value, "samples": json.dumps([value])} for index, value in enumerate(values)
    ]
    return [row(**common | step | columns) for step in steps]


def filled(path, *cells, **record):
    """A store with these cells, and the records of their runs."""
    with Store(path) as store:
        for rows in cells:
            store.add_run(rows[0]["run_id"], record | {"digests": [rows[0]["digest"]]})
            store.put(rows[0]["digest"], rows)
    return path
