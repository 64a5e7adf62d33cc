"""Results: the row, the store of rows, export, import and merge. Never imports torch, and pandas only for frames."""

from highway_bench.results.database import DiskError
from highway_bench.results.export import compact, export, export_runs, import_rows, merge, parsed
from highway_bench.results.salvage import Salvaged, salvage
from highway_bench.results.schema import COLUMNS, FAILURES, LATER_ATTEMPT, OUTCOMES, PROTOCOL, SCHEMA, Row, Status, row
from highway_bench.results.store import Store
from highway_bench.results.taking import MergeCounts

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
    "compact",
    "export",
    "export_runs",
    "import_rows",
    "merge",
    "parsed",
    "row",
    "salvage",
]
