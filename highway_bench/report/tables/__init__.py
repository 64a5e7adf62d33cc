"""Tables, one a module: tidy rows in, a frame with full-precision numbers out. Rounding is left to printing."""

from highway_bench.report.tables.answer import Answer, answer
from highway_bench.report.tables.counts import counts_table
from highway_bench.report.tables.failures import failures
from highway_bench.report.tables.gates import gates_table
from highway_bench.report.tables.memory import memory_table
from highway_bench.report.tables.propagation import propagation_table, steps_table
from highway_bench.report.tables.summary import summary
from highway_bench.report.tables.throughput import rates_table, throughput_table
from highway_bench.report.tables.trainability import trainability_table

__all__ = [
    "Answer",
    "answer",
    "counts_table",
    "failures",
    "gates_table",
    "memory_table",
    "propagation_table",
    "rates_table",
    "steps_table",
    "summary",
    "throughput_table",
    "trainability_table",
]
