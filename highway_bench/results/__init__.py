"""Results: the row, the store it is kept in, export and merge. Imports neither torch nor, but for frames, pandas."""

from highway_bench.results.export import export, merge, parsed
from highway_bench.results.schema import COLUMNS, FAILURES, LATER_ATTEMPT, OUTCOMES, SCHEMA, Row, Status, row
from highway_bench.results.store import Store

__all__ = [
    "COLUMNS",
    "FAILURES",
    "LATER_ATTEMPT",
    "OUTCOMES",
    "SCHEMA",
    "Row",
    "Status",
    "Store",
    "export",
    "merge",
    "parsed",
    "row",
]
