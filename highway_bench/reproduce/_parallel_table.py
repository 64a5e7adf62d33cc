"""The table of step times by sequence length."""

from __future__ import annotations

import pandas as pd

from highway_bench.frames.rows import rows_of
from highway_bench.report import columns as column

NAMES = {"attention": "attention", "bilstm": "BiLSTM"}


def shown(table: pd.DataFrame, note: str) -> column.Shown:
    """The table with one row per length, which has the columns of both families."""
    values = ("step", "low", "high", "share", "flops")
    by_length: dict[int, dict[str, float]] = {}
    for record in rows_of(table):
        own = by_length.setdefault(record["length"], {"length": record["length"]})
        own |= {f"{record['family']}_{name}": record[name] for name in values}
    wide = pd.DataFrame([by_length[length] for length in sorted(by_length)])
    wide = wide.reindex(columns=["length", *(f"{family}_{name}" for family in NAMES for name in values)])
    columns = [column.whole("length", "n")]
    for family, name in NAMES.items():
        columns += [
            column.spread(
                f"{family}_step",
                f"{name}, step",
                f"{family}_low",
                f"{family}_high",
                "s",
                "median with the 95 % interval of its order statistics",
            ),
            column.number(f"{family}_flops", f"{name}, work", "FLOP", "forward, one layer, one item"),
            column.percent(f"{family}_share", f"{name}, of the roofline"),
        ]
    return column.shown("parallel-step-time", "Step time by sequence length", wide, columns, note=note)
