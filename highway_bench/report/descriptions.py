"""What a store's runs say of its blocks, families, tasks and metrics: their order, their labels and their units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from highway_bench.report import older_stores
from highway_bench.report.rows import Runs

Described = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class MetricLabel:
    """How a metric is printed: its heading, what it is, its unit, and whether a share is read as a percentage."""

    heading: str
    hint: str = ""
    unit: str = "1"
    percent: bool = False


class Descriptions:
    """The descriptions in ``runs``, of several the newest run's; where they say nothing, ``older_stores`` does."""

    def __init__(self, runs: Runs | None = None) -> None:
        merged: dict[str, dict[str, Mapping[str, Any]]] = {"blocks": {}, "families": {}, "tasks": {}}
        for run in (runs or {}).values():
            for kind, entries in merged.items():
                entries.update(run.get(kind) or {})
        self.blocks: Described = merged["blocks"]
        self.families: Described = merged["families"]
        self.tasks: Described = merged["tasks"]

    @property
    def yardstick(self) -> str:
        """The block that ratios are taken to."""
        return next((name for name, said in self.blocks.items() if said.get("yardstick")), older_stores.YARDSTICK)

    def block_order(self, labels: Iterable[str]) -> list[str]:
        """Distinct block ``labels`` as they are listed: variants after their block, blocks without a rank by name."""
        return _sorted(labels, self.blocks, older_stores.BLOCKS)

    def family_order(self, labels: Iterable[str]) -> list[str]:
        """Distinct family ``labels`` as they are listed."""
        return _sorted(labels, self.families, older_stores.FAMILIES)

    def in_order(self, table: pd.DataFrame, keys: Iterable[str]) -> pd.DataFrame:
        """``table`` sorted by ``keys``, absent values first: families and blocks as they are listed, others by
        value."""
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

    def branch(self, family: str) -> str:
        """The family whose branch, with one affine map, ``family`` is compared with; often itself."""
        return str(self.families.get(family, {}).get("branch_of") or older_stores.BRANCHES.get(family, family))

    def metric(self, task: str, name: str, unit: str = "1") -> MetricLabel:
        """How the metric ``name`` of ``task`` is printed; ``unit`` is for one that no run describes."""
        said = (self.tasks.get(task, {}).get("metrics") or {}).get(name, {})
        heading, hint = older_stores.LABELS.get(name, (name.replace("_", " "), ""))
        return MetricLabel(
            str(said.get("label") or heading),
            str(said.get("hint") or hint),
            str(said.get("unit") or unit),
            bool(said.get("percent", name in older_stores.PERCENTAGES)),
        )

    def section(self, task: str) -> str:
        """The name of the section of a report that shows ``task``; the task's own name where it declares none."""
        return str(self.tasks.get(task, {}).get("section") or task)


def _sorted(labels: Iterable[str], described: Described, older: Sequence[str]) -> list[str]:
    def rank(label: str) -> tuple[float, str]:
        name = label.partition(" ")[0]
        known = described.get(name, {}).get("order")
        if known is None:
            known = older.index(name) if name in older else len(older)
        return float(known), label

    return sorted(set(labels), key=rank)


UNDESCRIBED = Descriptions()
"""The descriptions of rows without runs."""
