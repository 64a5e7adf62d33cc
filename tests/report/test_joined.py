"""The committed rows with a store's: one row a connection, what is repeated, and this machine's costs."""

import pytest

from highway_bench.frames.results import Results
from highway_bench.report.choice.answers import joined, this_machine
from highway_bench.report.choice.columns import IDENTITY, KNOWN
from highway_bench.report.choice.lines import measured_here, taken
from highway_bench.report.choice.screen import screen
from highway_bench.report.choice.table import finals_of, wide_table
from tests.report.test_wide_table import LOSSES, rows_with
from tests.rows import frame_of, timed

COSTS = {"plain": 1.0, "pre-norm": 1.2, "residual": 1.1}


def table_of(known, here):
    committed, results = (Results(frame_of(rows)) for rows in (known, here))
    return joined(wide_table(committed, KNOWN), finals_of(committed), results)


def by_connection(table):
    assert not table.duplicated(list(IDENTITY)).any()
    return {row["connection"]: row for row in table.to_dict("records")}


def test_equal_trainings_agree_and_are_no_rows_of_their_own():
    rows = rows_with(LOSSES)
    table = table_of(rows, rows)
    assert set(table["source"]) == {"known"}
    assert set(table["repeated"]) == {"agrees"}
    assert "1 of 1" in this_machine(table)
    assert len(screen(table)["kinds"]) == 1
    (line,) = taken(measured_here(table)).entries
    assert line[-1] == "agrees"


@pytest.mark.parametrize("share", [1.3, 0.5])
def test_a_significantly_different_result_is_a_mark_in_its_row(share):
    noisy = [share * loss * (1 + 0.001 * seed) for seed, loss in enumerate(LOSSES["residual"])]
    table = table_of(rows_with(LOSSES), rows_with(LOSSES | {"residual": noisy}))
    found = by_connection(table)
    assert {name for name, row in found.items() if row["repeated"] == "contradicts"} == {"residual"}
    assert "0 of 1" in this_machine(table)
    shown = {row["name"]: row["mark"] for row in screen(table)["kinds"][0]["depths"][0]["rows"]}
    assert shown == {"plain": "", "pre-norm": "", "residual": "≠", "highway": ""}
    (line,) = taken(measured_here(table)).entries
    assert line[-1] == "residual contradicts"


def test_differences_within_two_per_cent_agree():
    again = {name: [1.005 * loss for loss in losses] for name, losses in LOSSES.items()}
    assert set(table_of(rows_with(LOSSES), rows_with(again))["repeated"]) == {"agrees"}


def test_what_trains_there_and_diverges_here_contradicts():
    known = rows_with(LOSSES)
    here = rows_with(LOSSES | {"residual": [None] * 5})
    assert by_connection(table_of(known, here))["residual"]["repeated"] == "contradicts"


def test_another_protocol_is_not_compared():
    here = [row | {"nominal_width": row["nominal_width"] * 2} for row in rows_with(LOSSES)]
    table = table_of(rows_with(LOSSES), here)
    assert table["repeated"].isna().all()
    assert (len(table), table["protocol"].nunique()) == (2 * len(LOSSES), 2)
    assert this_machine(table) == ""


def test_a_connection_that_is_trained_here_alone_is_compared_with_the_known_ones():
    every = rows_with(LOSSES)
    own = [row for row in every if row["block"] == "residual"]
    found = by_connection(table_of([row for row in every if row["block"] != "residual"], own))
    expected = by_connection(wide_table(Results(frame_of(every))))
    assert found["residual"]["source"] == "here"
    for name, row in expected.items():
        for column in ("held_out_difference", "held_out_word", "held_out_place", "loss_ratio", "loss_place"):
            assert found[name][column] == pytest.approx(row[column], nan_ok=True), (name, column)


def test_costs_are_those_of_this_machine_and_of_further_connections_too():
    known = rows_with(LOSSES) + timed(COSTS)
    here = timed({"plain": 1.0, "pre-norm": 1.0, "residual": 2.0, "mhc": 3.0}, machine="here-2c")
    table = table_of(known, here)
    found = by_connection(table)
    assert {name: row["step_ratio"] for name, row in found.items() if row["step_ratio"] > 0} == pytest.approx(
        {"plain": 1.0, "pre-norm": 1.0, "residual": 2.0, "mhc": 3.0}
    )
    assert {row["timed_on"] for row in found.values() if row["step_ratio"] > 0} == {"here-2c"}
    assert found["residual"]["seconds_saved"] == pytest.approx(found["residual"]["steps_saved"] / 2)
    assert (found["mhc"]["outcome"], found["mhc"]["seeds"]) == ("not measured", 0)
    assert "4 connections" in this_machine(table)
    assert screen(table)["here"] == this_machine(table)


def test_steps_of_another_width_leave_the_known_costs():
    known = rows_with(LOSSES) + timed(COSTS)
    here = timed({"plain": 1.0, "pre-norm": 1.0, "residual": 2.0}, nominal_width=99, machine="here-2c")
    found = by_connection(table_of(known, here))
    assert found["residual"]["step_ratio"] == pytest.approx(1.1 / 1.2)
    assert found["residual"]["timed_on"] != "here-2c"
