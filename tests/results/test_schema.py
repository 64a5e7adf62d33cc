"""The row's columns are those of every existing store: a change needs a new ``SCHEMA``."""

from dataclasses import fields

import pytest

from highway_bench.cell import Cell
from highway_bench.results.schema import COLUMNS, FAILURES, OUTCOMES, SCHEMA, UNIQUE, Status, row

FROZEN = {
    1: "schema run_id time_utc commit machine gpu device torch threads task task_version block block_options family "
    "family_options match width nominal_width depth batch_size seq_len phase dtype mode dataset recipe trial seed "
    "metric axis index unit better status message value low high n samples params flops_per_item digest",
}
FROZEN[2] = FROZEN[1].replace("samples ", "samples paired ")
FROZEN[3] = FROZEN[2].replace("family_options ", "family_options start ")
FROZEN[4] = FROZEN[3].replace("schema ", "schema protocol ")
FROZEN[5] = f"{FROZEN[4]} source old_digest"


def test_columns_are_frozen():
    assert list(COLUMNS) == FROZEN[SCHEMA].split()
    assert UNIQUE == ("digest", "metric", "axis", "index")
    assert {kind for kind, _ in COLUMNS.values()} == {"INTEGER", "REAL", "TEXT"}


def test_every_field_of_a_cell_has_its_column():
    assert {item.name for item in fields(Cell)} <= set(COLUMNS)


def test_every_status_is_an_outcome_a_failure_or_a_skip():
    assert OUTCOMES | FAILURES | {Status.SKIPPED} == set(Status)
    assert not OUTCOMES & FAILURES


def test_row():
    one = row(metric="time", value=1.0)
    assert list(one) == list(COLUMNS)
    assert (one["schema"], one["axis"], one["index"], one["seed"]) == (SCHEMA, "", 0.0, None)
    with pytest.raises(KeyError, match="colour"):
        row(colour="red")
