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
RATIOS: Final = {
    "peak memory": ("predicted_bytes", "peak_bytes"),
    "its closed form": ("closed_form_bytes", "peak_bytes"),
    "time": ("predicted_seconds", "seconds"),
    "its closed form's": ("closed_form_seconds", "seconds"),
}
"""By heading: what is divided by what was measured."""


def known_cost_table(path: Path) -> Shown:
    """One row per family: the settings, and the range of each prediction over what was measured."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    table = pd.DataFrame(map(json.loads, lines))
    records: list[dict[str, Any]] = []
    for family, part in table.groupby("family", sort=True) if len(table) else ():
        ratios = {name: part[predicted] / part[measured] for name, (predicted, measured) in RATIOS.items()}
        ranges = {name: f"{three(one.min())} to {three(one.max())}" for name, one in ratios.items()}
        records.append({"family": str(family).rpartition(":")[2], "settings": len(part), **ranges})
    columns = [column.words("family", "family"), column.whole("settings", "settings")]
    columns += [column.words(name, name) for name in RATIOS]
    where = sorted(set(table["machine"])) if len(table) else []
    note = f"Predicted ÷ measured, the range over connections and depths. Measured on {', '.join(where)}."
    return shown("known-cost", "Cost predicted before a run", pd.DataFrame(records), columns, note=note)
