"""Results: the row, the store of rows, export and import. Never imports torch, and pandas only for frames."""

from highway_bench.results.database import DiskError
from highway_bench.results.export import export, import_rows, join_into, parsed
from highway_bench.results.salvage import Salvaged, salvage
from highway_bench.results.schema import COLUMNS, FAILURES, LATER_ATTEMPT, OUTCOMES, PROTOCOL, SCHEMA, Row, Status, row
from highway_bench.results.store import MergeCounts, Store

__all__ = [
    "COLUMNS",
    "FAILURES",
    "LATER_ATTEMPT",
    "OUTCOMES",
    "PROTOCOL",
    "SCHEMA",
    "DiskError",
    "MergeCounts",
    "Row",
    "Salvaged",
    "Status",
    "Store",
    "export",
    "import_rows",
    "join_into",
    "parsed",
    "row",
    "salvage",
]
