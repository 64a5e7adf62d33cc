"""The table of predicted and measured costs, from the lines that benches/cost_known.py writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pandas as pd

from highway_bench.report import columns as column
from highway_bench.report.columns import Shown, shown
from highway_bench.report.format import three

FILE: Final = "cost-known.jsonl"
SOURCE: Final = ("machine", "commit")
"""What a line was measured on, and by which code."""
RATIOS: Final = {
    "peak memory": ("predicted_bytes", "peak_bytes"),
    "its closed form": ("closed_form_bytes", "peak_bytes"),
    "time": ("predicted_seconds", "seconds"),
    "its closed form's": ("closed_form_seconds", "seconds"),
}
"""By heading: what is divided by what was measured."""


def known_cost_table(path: Path) -> Shown:
    """One row per family: the settings, and the range of each prediction over what was measured.

    Of several machines and commits, those of the last line.
    """
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    table = pd.DataFrame(map(json.loads, lines))
    where = dict(table.iloc[-1][[*SOURCE]]) if len(table) else {}
    for name, value in where.items():
        table = table[table[name] == value]
    records: list[dict[str, Any]] = []
    for family, part in table.groupby("family", sort=True) if len(table) else ():
        ratios = {name: part[predicted] / part[measured] for name, (predicted, measured) in RATIOS.items()}
        ranges = {name: f"{three(one.min())} to {three(one.max())}" for name, one in ratios.items()}
        numbers = {"settings": len(part), "timed": part["seconds"].count()}
        records.append({"family": str(family).rpartition(":")[2], **numbers, **ranges})
    columns = [
        column.words("family", "family"),
        column.whole("settings", "settings"),
        column.whole("timed", "timed", "trainings that ran to their last step"),
    ]
    columns += [column.words(name, name) for name in RATIOS]
    note = "Predicted ÷ measured, the range over connections and depths. A training that diverged is not timed."
    note += f" Measured on {where['machine']} at {str(where['commit'])[:8]}." if where else ""
    return shown("known-cost", "Cost predicted before a run", pd.DataFrame(records), columns, note=note)
