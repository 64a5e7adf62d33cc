"""The wide table: every number from its rows, words that intervals bear out, and the answers that are read from it."""

import math
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

import highway_bench as hb
from highway_bench.cli import app
from highway_bench.frames.results import Results
from highway_bench.report.choice.answers import known_answers, known_finals
from highway_bench.report.choice.columns import COLUMNS, IDENTITY, bounds
from highway_bench.report.choice.costs import add_seconds
from highway_bench.report.choice.lines import answer_lines, how_sure
from highway_bench.report.choice.ranking import CRITERIA, KINDS, Ranking, depths_of, kind_named, kinds_of, ranking
from highway_bench.report.choice.table import wide_table
from highway_bench.report.format import estimate
from highway_bench.results.parquet import FOLDER
from highway_bench.success.ladder import NOT_RUN
from tests.rows import LADDER, frame_of, timed, trained

LOSSES = {
    "plain": [0.1, 0.11, 0.12, 0.105, 0.098],
    "pre-norm": [0.02, 0.022, 0.021, 0.02, 0.023],
    "residual": [0.01, 0.011, 0.0105, 0.0102, 0.0111],
    "highway": [0.5, 0.6, 0.7, 0.5, 0.4],
}


def rows_with(losses):
    by_depth = {(block, 10): by_seed for block, by_seed in losses.items()}
    return trained(by_depth, recipe=LADDER | {"steps": 120}, rate=0.03, curve=True)


def of(rows):
    table = wide_table(Results(frame_of(rows)))
    return {row["connection"]: row for row in table.to_dict("records")}


def test_numbers_are_those_of_the_rows():
    found = of(rows_with(LOSSES) + timed({"plain": 1.0, "pre-norm": 1.2, "residual": 1.1}))
    own, reference = found["residual"], found["pre-norm"]
    held_out = [1.2 * loss for loss in LOSSES["residual"]]
    assert own["held_out"] == pytest.approx(sum(held_out) / 5)
    differences = [1.2 * (a - b) for a, b in zip(LOSSES["residual"], LOSSES["pre-norm"], strict=True)]
    assert own["held_out_difference"] == pytest.approx(sum(differences) / 5)
    assert own["held_out_word"] == "better"
    assert (own["held_out_place"], reference["held_out_place"], found["plain"]["held_out_place"]) == (
        "best", "behind", "behind",
    )  # fmt: skip
    assert own["step_ratio"] == pytest.approx(1.1 / 1.2)
    assert own["step_ratio_low"] <= own["step_ratio"] <= own["step_ratio_high"]
    # The curves fall by one law: residual is at pre-norm's loss after so many of its 120 steps, in intervals of 6.
    steps = [
        120 * math.log(a / 2.3) / math.log(b / 2.3) for a, b in zip(LOSSES["pre-norm"], LOSSES["residual"], strict=True)
    ]
    saved = [120 / (6 * math.ceil(one / 6)) for one in steps]
    assert own["steps_saved"] == pytest.approx(math.exp(sum(map(math.log, saved)) / 5))
    assert own["seconds_saved"] == pytest.approx(own["steps_saved"] / own["step_ratio"])
    assert found["plain"]["not_reached"] == 5
    assert math.isnan(found["plain"]["steps_saved"])
    assert found["highway"]["outcome"] != "trains"
    assert pd.isna(found["highway"]["held_out_word"])  # compared where it trains


def test_a_connection_of_which_a_seed_diverged_does_not_train():
    losses = {**LOSSES, "residual": [*(LOSSES["residual"] * 2)[:9], None]}
    own = of(rows_with(losses))["residual"]
    assert (own["outcome"], own["trains"], own["seeds"]) == ("diverges", 9, 10)


def test_what_was_only_tuned_stays_where_finals_ran_on_two_machines():
    finals = rows_with({"plain": [0.1] * 5, "pre-norm": [0.02] * 5})
    tuned = [row | {"trial": 0} for row in rows_with({"rezero": [0.01, 0.02]})]
    moved = [row | {"machine": "another"} if row["seed"] == 4 else row for row in finals]
    for rows in (finals, moved):
        assert of([*rows, *tuned])["rezero"]["outcome"] == NOT_RUN


def test_the_table_has_its_columns_with_types_and_units():
    table = wide_table(Results(frame_of(rows_with(LOSSES))))
    for name, column in COLUMNS.items():
        bounds = (f"{name}_low", f"{name}_high") if column.interval else ()
        assert {name, *bounds} <= set(table.columns)
        assert str(table[name].dtype) == column.type, name
    assert not table.duplicated(list(IDENTITY)).any()


# ------------------------------------------------------------------------------------------- what is committed


def test_the_committed_part_is_small_and_whole():
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 1_000_000
    table, finals = known_answers(), known_finals()
    assert not table.duplicated(list(IDENTITY)).any()
    counts = finals.groupby(list(IDENTITY), dropna=False).size()
    measured = table[table["seeds"].gt(0)].set_index(list(IDENTITY))["seeds"]
    assert counts.sort_index().to_dict() == measured.sort_index().to_dict()
    assert set(table["outcome"]) <= {"trains", "slow", "fails", "diverges", "not measured", "undecided"}  # fmt: skip


def test_every_mean_difference_and_word_follows_from_the_committed_finals():
    """Computed again from one row a seed, with other code."""
    table, finals = known_answers(), known_finals()
    compared = 0
    for _, part in table.groupby(["kind", "data", "protocol", "depth"]):
        pairs = part[part["held_out_word"].notna()]
        for row in pairs.to_dict("records"):
            own = finals.merge(pd.DataFrame([{name: row[name] for name in IDENTITY}]), on=list(IDENTITY))
            start = row["reference"].partition(" · ")[2]
            base = part[part["connection"].eq("pre-norm") & (part["start"].eq(start) if start else True)]
            other = finals.merge(base[list(IDENTITY)], on=list(IDENTITY))
            both = own.merge(other, on="seed", suffixes=("", "_r")).dropna(subset=["held_out", "held_out_r"])
            assert row["held_out"] == pytest.approx(own["held_out"].mean())
            assert row["held_out_difference"] == pytest.approx((both["held_out"] - both["held_out_r"]).mean())
            low, high = row["held_out_difference_low"], row["held_out_difference_high"]
            assert low <= row["held_out_difference"] <= high
            within = 0.01 if row["data"] == "language" else 0.02 * other["held_out"].mean()
            equal = -within <= low and high <= within
            said = "equal" if equal else "better" if high < 0 else "worse" if low > 0 else "undecided"
            assert row["held_out_word"] == (said if len(both) >= 5 else "undecided")
            compared += 1
    assert compared > 100


def test_answers_join_the_committed_rows_and_those_of_a_store():
    table = hb.answers(frame_of(rows_with(LOSSES)))
    assert set(table["source"]) == {"known", "here"}
    assert set(table.loc[table["source"].eq("here"), "data"]) == {"digits"}
    assert table.attrs["units"]["bytes"] == "B"


# ------------------------------------------------------------------------------------------- answers in a terminal


def test_what_to_take_is_the_lowest_held_out_loss_of_those_that_train():
    table = known_answers()
    for kind in KINDS:
        for depth in depths_of(table, kind):
            one = ranking(table, kind, depth)
            own = table[table["kind"].eq(kind.family) & table["data"].eq(kind.data) & table["depth"].eq(depth)]
            best = own[own["held_out_place"].eq("best") & own["protocol"].eq(one.rows[0]["protocol"])]
            assert one.take == best["connection"].iloc[0]
            connections = [row["connection"] for row in one.rows]
            assert len(connections) == len(set(connections))
            trains = [row["outcome"] == "trains" for row in one.rows]
            assert trains == sorted(trains, reverse=True)


def test_what_trains_and_is_not_timed_comes_after_what_is():
    rows = rows_with(LOSSES) + timed({"pre-norm": 1.2, "residual": 1.1})
    table = wide_table(Results(frame_of(rows)))
    (kind,) = kinds_of(table)
    assert [row["connection"] for row in ranking(table, kind, 10, "step").rows][:3] == ["residual", "pre-norm", "plain"]


@pytest.mark.parametrize("what", ["step", "time"])
def test_places_by_a_cost_follow_from_its_intervals(what):
    table, words = known_answers(), set()
    for kind in KINDS:
        for depth in depths_of(table, kind):
            rows = ranking(table, kind, depth, what).rows
            placed = [row for row in rows if row["place"]]
            assert list(rows[: len(placed)]) == placed
            for row in placed[1:]:
                apart = row["low"] > placed[0]["high"] or row["high"] < placed[0]["low"]
                assert row["place"] == ("behind" if apart else "not separated")
                words.add(row["place"])
    assert "behind" in words


@pytest.mark.parametrize(
    ("name", "found"),
    [("MLP", "mlp"), ("Dense", "mlp"), ("ResNet block", "resnet"), ("GPT", "gpt"), ("cnn", "convolution")],
)
def test_a_kind_is_found_under_what_people_call_it(name, found):
    assert kind_named(name).name == found


def test_between_two_depths_both_are_shown():
    done = CliRunner().invoke(app, ["answer", "mlp", "--depth", "30"])
    assert done.exit_code == 0
    assert re.search(r"^20 .*^50 ", done.stdout, re.DOTALL | re.MULTILINE)


# ------------------------------------------------------------------------------------------ whole schedules


def scheduled(losses, **words):
    """Pre-norm after ``steps`` of whole schedules, with three seeds each."""
    return [
        row
        for steps, by_seed in losses.items()
        for row in trained({("pre-norm", 10): by_seed}, recipe=LADDER | {"steps": steps, **words}, rate=0.03)
    ]


def law(steps, noise=(-0.0001, 0, 0.0001)):
    return [0.01 + 0.5 * steps**-0.8 + one for one in noise]


def test_less_time_is_where_pre_norms_schedules_are_at_the_same_loss():
    """A power law of the losses: residual is after 120 steps where pre-norm is after 240; highway beyond 480."""
    ladder = {steps: law(steps) for steps in (30, 60, 240, 480)}
    losses = {"pre-norm": law(120) * 2, "residual": law(240) * 2, "highway": law(2000) * 2, "plain": law(20) * 2}
    rows = (
        rows_with(losses)
        + scheduled(ladder, verdict=False)
        + timed({"plain": 1, "pre-norm": 1, "residual": 2, "highway": 1.5})
    )
    found = of(rows)
    own = found["residual"]
    assert own["steps_by"] == "power law"
    assert own["fewer_steps"] == pytest.approx(2, rel=0.01)
    assert own["fewer_steps_low"] < 2 < own["fewer_steps_high"] < 2.3
    assert own["less_time"] == pytest.approx(own["fewer_steps"] / own["step_ratio"])
    assert (found["highway"]["fewer_steps"], found["highway"]["fewer_steps_high"]) == (4, math.inf)
    assert (found["plain"]["fewer_steps"], found["plain"]["fewer_steps_low"]) == (0.25, 0)
    assert math.isnan(found["pre-norm"]["fewer_steps"])
    table = wide_table(Results(frame_of(rows)))
    lines = answer_lines(table, kinds_of(table)[0], 10, "time")
    assert "× less time to the same loss" in lines[2]
    assert ["highway" in lines[3], "> 2.67" in lines[3], "1.00" in lines[4], "< 0.250" in lines[6]] == [True] * 4


def test_errors_of_steps_and_seconds_add_up_and_open_intervals_stay_open():
    row = {"step_ratio": 2.0, "step_ratio_high": 2.2} | bounds("fewer_steps", 3.0, 2.5, math.inf)
    add_seconds(row)
    half = math.hypot(math.log(3 / 2.5), math.log(1.1))
    found = row["less_time"], row["less_time_low"], row["less_time_high"]
    assert found == pytest.approx((1.5, 1.5 * math.exp(-half), math.inf))
    assert estimate(*found) == f"> {1.5 * math.exp(-half):.2f}"


def test_without_enough_schedules_or_where_losses_rise_there_is_no_factor():
    losses = {"pre-norm": law(120) * 2, "residual": law(240) * 2}
    for rungs in ({30: law(30), 60: law(60)}, {30: law(30), 60: law(60), 240: law(40)}):
        assert math.isnan(of(rows_with(losses) + scheduled(rungs, verdict=False))["residual"]["fewer_steps"])


def test_a_connection_trains_alone_only_among_others_that_were_trained():
    def ranked(*outcomes):
        rows = [
            {"connection": str(n), "outcome": word, "seeds": seeds, "place": "best" if n == 0 else None}
            for n, (word, seeds) in enumerate(outcomes)
        ]
        return Ranking(KINDS[0], 10, CRITERIA["held-out"], tuple(rows))

    alone, trains = ("fails", 5), ("trains", 5)
    assert how_sure(ranked(trains, alone)) == "It alone trains"
    assert how_sure(ranked(trains, ("not measured", 0))) == how_sure(ranked(trains)) == "No other known"
