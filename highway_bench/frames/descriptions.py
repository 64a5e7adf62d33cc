"""Descriptions of blocks, families, data sets, tasks and metrics, as a store's runs recorded them, and defaults.

Blocks, families and metrics declare these facts themselves, and each run records them in its store
(``execution/record.py``). The defaults are for rows whose runs describe nothing: those of version 0.1.0, and
frames without runs. New entries need nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from highway_bench.frames.rows import Runs
from highway_bench.results.schema import DESCRIBED

BASELINE: Final = "plain"
"""The block that is the denominator of every ratio."""
BLOCKS: Final = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm")
"""Blocks in the order of print."""
FAMILIES: Final = ("dense", "dense-pair", "conv", "conv-pair", "bilstm", "mlp", "attention", "transformer")
"""Families in the order of print."""
CHANCE: Final = {"digits": math.log(10), "mnist-5k": math.log(10)}
"""Losses of the best constant prediction, in nat."""
PERCENTAGES: Final = frozenset(
    {
        "intact_error",
        "lesion_error",
        "gate_activity",
        "gates_shut",
        "gates_full",
        "gates_open_one",
        "gates_open_average",
        "gates_open_some",
        "gate_saturation",
        "train_accuracy",
        "test_accuracy",
        "epoch_test_accuracy",
        "budget_mismatch",
    }
)
"""Metrics of unit 1 that are printed as percentages."""
Described = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class MetricLabel:
    """How a metric is printed: heading, explanation, unit, and whether a share is printed as a percentage."""

    heading: str
    hint: str = ""
    unit: str = "1"
    percent: bool = False


class Descriptions:
    """The descriptions in ``runs``; the newest run takes precedence, and the defaults come last."""

    def __init__(self, runs: Runs | None = None) -> None:
        merged: dict[str, dict[str, Mapping[str, Any]]] = {name: {} for name in DESCRIBED}
        for run in (runs or {}).values():
            for kind, entries in merged.items():
                entries.update(run.get(kind) or {})
        self.blocks: Described = merged["blocks"]
        self.families: Described = merged["families"]
        self.tasks: Described = merged["tasks"]
        self.datasets: Described = merged["datasets"]

    @property
    def baseline(self) -> str:
        """The block that is the denominator of every ratio."""
        marked = (name for name, block in self.blocks.items() if block.get("baseline", block.get("yardstick")))
        return next(marked, BASELINE)  # "yardstick" in the records of version 0.1

    def block_order(self, labels: Iterable[str]) -> list[str]:
        """Distinct block ``labels`` in the order of print: variants follow their block, unranked blocks come last."""
        return _sorted(labels, self.blocks, BLOCKS)

    def family_order(self, labels: Iterable[str]) -> list[str]:
        """Distinct family ``labels`` in the order of print."""
        return _sorted(labels, self.families, FAMILIES)

    def in_order(self, table: pd.DataFrame, keys: Iterable[str]) -> pd.DataFrame:
        """``table`` sorted by ``keys``: families and blocks in the order of print, others by value, nulls first."""
        listed = {"family_label": self.family_order, "block": self.block_order}
        orders = {
            name: order(table[name]) for name, order in listed.items() if name in table and table[name].notna().all()
        }
        return table.sort_values(
            list(keys),
            key=lambda column: column.map(orders[column.name].index) if column.name in orders else column,
            kind="stable",
            na_position="first",
            ignore_index=True,
        )

    def metric(self, task: str, name: str, unit: str = "1") -> MetricLabel:
        """How the metric ``name`` of ``task`` is printed. ``unit`` is the default if no run describes the metric."""
        described = (self.tasks.get(task, {}).get("metrics") or {}).get(name, {})
        return MetricLabel(
            str(described.get("label") or name.replace("_", " ")),
            str(described.get("hint") or ""),
            str(described.get("unit") or unit),
            bool(described.get("percent", name in PERCENTAGES)),
        )

    def chance_loss(self, dataset: str | None) -> float:
        """The loss of the best constant prediction on a data set; NaN if it is not known."""
        known = self.datasets.get(dataset or "", {}).get("chance_loss", CHANCE.get(dataset or ""))
        return math.nan if known is None else float(known)


def _sorted(labels: Iterable[str], described: Described, older: Sequence[str]) -> list[str]:
    def rank(label: str) -> tuple[float, str]:
        name = label.partition(" ")[0]
        order = described.get(name, {}).get("order")
        if order is None:
            order = older.index(name) if name in older else len(older)
        return float(order), label

    return sorted(labels.unique() if isinstance(labels, pd.Series) else set(labels), key=rank)


UNDESCRIBED = Descriptions()
"""Defaults, for rows without runs."""
