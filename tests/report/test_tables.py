"""Each table against values worked out by hand."""

import json
import math

import pandas as pd
import pytest

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.frames.results import Results, open_results
from highway_bench.frames.rows import prepared
from highway_bench.report.figures.by_depth import success_rate
from highway_bench.results.store import Store
from tests.rows import LADDER, PLAIN, cell, frame_of, inside, memory, metric, timed, timing, trained


def ladder(losses, *, recipe=None, **values):
    """Runs with these final losses, one a seed."""
    return frame_of(trained(losses, recipe=LADDER | (recipe or {}), **values))


def of(table, **values):
    """The one row of ``table`` with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.to_dict("records")[0]


def test_a_ratio_is_of_the_samples_that_were_taken_in_turn():
    table = Results(frame_of(timed({"plain": 1.0, "highway": 2.0}))).step_times()
    row = of(table, block="highway")
    assert [row[name] for name in ("ratio", "ratio_low", "ratio_high")] == pytest.approx([2.0] * 3)
    assert (row["ratio_gap"], row["n"]) == ("", 8)
    assert list(table["block"]) == ["plain", "highway"]
    assert of(table, block="plain")["ratio"] == 1.0


def test_a_share_of_the_roofline_may_be_empty_and_the_remark_has_the_reason():
    """Cached data can be faster than the roofline: the share and the slow-down are then none, and the time is fine."""
    frame = frame_of(timed({"plain": 1.0, "highway": 2.0}))
    empty = frame["metric"].isin(["roofline_share", "slowdown"]) & (frame["block"] == "highway")
    frame.loc[empty, ["value", "low", "high"]] = math.nan
    frame.loc[empty, "message"] = "above the roofline"
    row = of(Results(frame).step_times(), block="highway")
    assert (row["status"], row["message"], row["ratio"]) == ("ok", "above the roofline", pytest.approx(2.0))


def test_bytes_per_layer_have_ratios_to_plain():
    rows = memory(cell("memory", "highway", "conv", 3), 300.0)
    rows += memory(cell("memory", "plain", "conv", 3), 200.0)
    table = Results(frame_of(rows)).memory()
    assert list(table["layer_ratio"]) == [1.0, 1.5]
    assert of(table, block="highway")["saved_activations"] == 900.0


def test_success_losses_and_times_over_seeds():
    frame = ladder({("highway", 10): [0.1, 0.1, 0.1, 0.1, 1.0]})
    row = of(Results(frame).trainability(), block="highway")
    assert (row["k"], row["n"], row["stalled"], row["diverged"]) == (4, 5, 1, 0)
    assert (row["rate_low"], row["rate_high"]) == (pytest.approx(0.376, abs=5e-4), pytest.approx(0.964, abs=5e-4))
    assert row["verdict"] == "slow"  # the run that does not succeed has learnt something
    assert row["provisional"]
    assert row["final_loss"] == pytest.approx(10**-0.8)  # geometric mean of four 0.1 and one 1
    half = 1.2417 * math.sqrt(0.2)  # t(.975, 4)/√5 times the sample deviation of logs −1 −1 −1 −1 0
    assert row["loss_low"] == pytest.approx(10 ** (-0.8 - half), rel=1e-3)
    assert row["steps_to_threshold"] == 120  # 100, 110, 120, 130 and never
    assert row["seconds_to_threshold"] == pytest.approx(0.24)
    assert row["seeds"] == [0, 1, 2, 3, 4]


def test_the_seconds_of_networks_trained_together_are_no_networks_seconds():
    frame = ladder({("highway", 10): [0.1] * 5, ("plain", 10): [2.0] * 5}, together=5)
    row = of(Results(frame).trainability(), block="highway")
    assert math.isnan(row["step_seconds"])
    assert math.isnan(row["seconds_to_threshold"])
    assert row["steps_to_threshold"] == 120
    assert of(Results(frame).trainability(), block="plain")["seconds_to_threshold"] == math.inf  # reached by none


def test_a_diverged_run_counts_as_infinite_and_leaves_no_interval():
    row = of(Results(ladder({("plain", 10): [0.1, None, 0.2]})).trainability(), block="plain")
    assert row["final_loss"] == 0.2
    assert math.isnan(row["loss_low"])
    assert row["diverged"] == 1
    most = of(Results(ladder({("plain", 10): [0.1, None, None]})).trainability(), block="plain")
    assert most["final_loss"] == math.inf
    assert most["seconds_to_threshold"] == math.inf


def test_what_trains_in_more_steps_is_slow():
    """The longer runs give no verdict of their own."""
    short = ladder({("plain", 10): [2.0] * 5, ("residual", 10): [2.0] * 5, ("highway", 10): [0.1] * 5})
    words = {"steps": 3 * LADDER["steps"], "verdict": False}
    longer = ladder({("plain", 10): [0.1] * 5, ("residual", 10): [2.0] * 5}, recipe=words)
    results = Results(pd.concat([short, longer]))
    table = results.trainability()
    is_short = table["recipe"].eq(short["recipe"].iloc[0])
    verdicts = dict(zip(table["block"][is_short], table["verdict"][is_short], strict=True))
    assert verdicts == {"plain": "slow", "residual": "fails", "highway": "trains"}
    assert set(table["verdict"][~is_short]) == {"no verdict"}


def test_runs_that_did_not_finish_leave_a_verdict_open_and_trials_count_for_nothing():
    lost = cell("trainability", "plain", "dense", 10, dataset="digits", recipe=LADDER, seed=4)
    frame = frame_of([lost | {"metric": "", "status": "timeout", "message": "too slow"}])
    trials = ladder({("plain", 10): [2.0]}, trial=0, recipe={"rate": 0.1})
    row = of(Results(pd.concat([ladder({("plain", 10): [0.1] * 4}), frame, trials])).trainability(), block="plain")
    assert (row["n"], row["unfinished"], row["verdict"]) == (4, 1, "undecided")


GOOD, BAD = [0.1] * 5, [2.0] * 5


def test_a_frontier_off_the_ladder_is_censored():
    table = Results(ladder({("plain", 10): BAD, ("plain", 20): BAD, ("residual", 10): GOOD, ("residual", 20): GOOD}))
    plain, residual = (of(table.frontier(), block=block) for block in ("plain", "residual"))
    assert math.isnan(plain["l_max"])  # no depth was reached
    assert (plain["shallowest"], plain["l_max_censored"], plain["l50_censored"]) == (10, "left", "left")
    assert (residual["l_max"], residual["l_max_censored"], residual["l50_censored"]) == (20, "right", "right")


def test_the_area_under_success_is_that_of_the_whole_ladder():
    """A rung is not tried where the one below trained at no seed; where it is unknown, so is the area."""
    losses = {("plain", 10): GOOD, ("plain", 100): BAD, ("highway", 10): GOOD}
    table = Results(ladder(losses | {("residual", depth): GOOD for depth in (10, 100, 1000)})).frontier()
    areas = {block: of(table, block=block)["area"] for block in ("plain", "residual", "highway")}
    assert areas == {"plain": pytest.approx(0.25), "residual": 1.0, "highway": pytest.approx(math.nan, nan_ok=True)}


def test_a_frontier_that_moves_with_the_steps_is_limited_by_the_budget():
    short = {("plain", 10): GOOD, ("plain", 20): BAD, ("residual", 10): GOOD, ("residual", 20): GOOD}
    longer = ladder(short | {("plain", 20): GOOD}, recipe={"steps": 2000})
    table = Results(pd.concat([ladder(short), longer])).frontier()
    assert set(table.loc[table["block"] == "plain", "limited"]) == {True}
    assert set(table.loc[table["block"] == "residual", "limited"]) == {False}


def test_a_depth_at_which_no_run_finished_ends_the_frontier():
    lost = frame_of([cell("trainability", "plain", "dense", 50, dataset="digits", recipe=LADDER, seed=seed)
                     | {"metric": "", "status": "timeout"} for seed in range(5)])  # fmt: skip
    frame = ladder({("plain", 10): GOOD, ("plain", 100): GOOD})
    row = of(Results(pd.concat([frame, lost])).frontier(), block="plain")
    assert (row["l_max"], row["l_max_censored"], row["l50_censored"]) == (10, "", "right")
    assert math.isnan(of(Results(lost).frontier(), block="plain")["l_max"])


def test_failures_are_listed_with_reason_and_outcomes_are_not():
    frame = ladder({("plain", 10): [2.0, None]})
    base = cell("throughput", "plain", "conv", 4, phase="forward")
    bad = [base | {"status": status, "message": f"why {status}", "metric": "", "digest": status, "seed": seed}
           for seed, status in enumerate(("skipped", "oom", "oom"))]  # fmt: skip
    bad[2]["digest"] = "oom again"
    table = Results(pd.concat([frame, frame_of(bad)])).failures()
    assert list(table["status"]) == ["oom", "skipped"]
    assert list(table["cells"]) == [2, 1]
    assert list(table["message"]) == ["why oom", "why skipped"]


def test_a_failure_after_a_result_is_listed_and_the_result_is_used(tmp_path):
    """A pair that was timed again: plain crashed, so its old times are used, and pair with nothing of the new run."""
    plain, other = (cell("throughput", block, "dense", 4, digest=block) for block in ("plain", "highway"))
    again = {"run_id": "run-2", "time_utc": "2026-02-02T03:04:05+00:00"}
    with Store(tmp_path / "store.sqlite") as store:
        store.put("plain", timing(plain, PLAIN))
        store.put("highway", timing(other, [2 * x for x in PLAIN], PLAIN))
        assert of(Results(store.frame()).step_times(), block="highway")["ratio"] == pytest.approx(2.0)
        store.put("plain", [metric(plain | again, "step_time", None, "s", status="crashed", message="left with 3")])
        store.put("highway", timing(other | again, [8 * x for x in PLAIN], PLAIN))
        frame = store.frame()
    table = Results(frame).step_times()
    assert (of(table, block="plain")["step_time"], of(table, block="plain")["status"]) == (1.1, "ok")
    assert of(table, block="highway")["ratio"] == pytest.approx(8.0)
    (listed,) = Results(frame).failures().to_dict("records")
    assert (listed["block"], listed["status"], listed["cells"]) == ("plain", "crashed", 1)


def test_trained_networks_from_inside():
    rows = []
    for block, losses in (("highway", (0.1, 0.2)), ("residual", (0.1, 2.0))):
        for seed, loss in enumerate(losses):
            base = cell("gates", block, "dense", 4, dataset="digits", recipe=LADDER, seed=seed)
            rows += inside(base, loss, gated=block == "highway")
    table = Results(frame_of(rows)).gates()
    highway, residual = of(table, block="highway"), of(table, block="residual")
    assert (highway["k"], highway["n"], residual["k"]) == (2, 2, 1)
    assert highway["intact_loss"] == pytest.approx(0.15)
    assert highway["gate_activity"] == pytest.approx(0.15 * 1.625)  # layers have 1.25, 1.5, 1.75 and 2 times as much
    assert (highway["lesion_at"], highway["lesion_most"]) == (4, pytest.approx(2 * 0.45 - 0.15))
    assert math.isnan(residual["gate_activity"])


def test_counts_have_exact_ratios_to_plain():
    rows = []
    for block, adds, machine in (("highway", 300.0, "a"), ("plain", 200.0, "a"), ("plain", 200.0, "b")):
        base = cell("cost", block, "dense", 4, machine=machine)
        rows += [metric(base, "parameters", 7.0, "1"), metric(base, "multiply_adds", adds, "1")]
    table = Results(frame_of(rows)).counts()
    assert list(zip(table["block"], table["adds_ratio"], strict=True)) == [("plain", 1.0), ("highway", 1.5)]


def test_the_digest_that_a_run_requested_last_is_reported(tmp_path):
    """An edit (B) that was undone: the run after it finds A in the store, and B's rows stay the newest.

    Without a record of a run, the newest rows are reported, whatever their order."""
    base = cell("memory", "plain", "dense", 4)
    first = memory(base | {"digest": "a", "run_id": "run-1", "time_utc": "2026-01-01T00:00:01+00:00"}, 1.0)
    edited = memory(base | {"digest": "b", "run_id": "run-2", "time_utc": "2026-01-02T00:00:01+00:00"}, 2.0)
    for rows in (first + edited, edited + first):
        assert of(Results(frame_of(rows)).memory(), block="plain")["saved_per_layer"] == 2.0
    values = []
    with Store(tmp_path / "store.sqlite") as store:
        for day, (digest, rows) in enumerate((("a", first), ("b", edited), ("a", [])), start=1):
            if rows:
                store.put(digest, rows)
            store.add_run(f"run-{day}", {"started": f"2026-01-0{day}T00:00:00+00:00", "digests": [digest]})
            frame = open_results(store).rows
            values.append(of(Results(frame).memory(), block="plain")["saved_per_layer"])
        store.put("c", [row | {"digest": "c", "time_utc": "2026-01-04T00:00:01+00:00", "value": 3.0} for row in first])
        store.add_run("run-4", {"started": "2026-01-04T00:00:00+00:00"})  # killed: its record names no digest
        frame = open_results(store).rows
        values.append(of(Results(frame).memory(), block="plain")["saved_per_layer"])
    assert values == [1.0, 2.0, 1.0, 3.0]


def test_machines_are_never_pooled_and_are_named_where_there_are_several():
    runs_of = {("plain", 10): [0.1] * 5, ("residual", 10): [0.1] * 5}
    one = ladder(runs_of)
    other = ladder(runs_of | {("plain", 10): [2.0] * 5}, machine="Other CPU")
    both = pd.concat([one, other])
    table = Results(prepared(both)).trainability()
    assert set(table["n"]) == {5}
    assert of(table, block="plain", machine="Other CPU")["k"] == 0
    assert list(Results(both).frontier()["machine"]) == ["Example CPU, 2 cores"] * 2 + ["Other CPU"] * 2
    assert len({panel.sheet for panel in success_rate(Results(prepared(both)))}) == 2


def test_a_contest_that_went_on_on_another_machine_is_one():
    """Losses belong to no machine. Seconds do: those of the machine of most runs count."""
    frame = ladder({("plain", 10): [0.1] * 5, ("residual", 10): [0.1] * 5})
    moved = frame["seed"].ge(3) & frame["trial"].isna()
    frame["machine"] = frame["machine"].mask(moved, "Other CPU")
    frame["value"] = frame["value"].mask(moved & frame["metric"].eq("step_seconds"), 9.0)
    results = Results(frame)
    table = results.trainability()
    assert (list(table["n"]), set(table["machine"])) == ([5, 5], {"Example CPU, 2 cores"})
    assert (table["step_seconds"] < 1).all()
    assert set(results.training_runs()["ran_on"]) == {"Example CPU, 2 cores", "Other CPU"}


def test_a_tuned_rate_at_the_edge_of_those_tried_is_reported():
    frame = ladder({("plain", 10): [2.0] * 5, ("highway", 10): [0.1] * 5}, recipe={"rates": [0.01, 0.1]})
    assert set(Results(frame).trainability()["edge"]) == {"highest"}
    for recipe in ({"rates": [0.01, 0.1, 0.3]}, {"rate": 0.1, "rates": None}):
        inside = ladder({("highway", 10): [0.1] * 5}, recipe=recipe)
        assert set(Results(inside).trainability()["edge"]) == {""}


def test_a_variant_is_a_block_of_its_own():
    rows = memory(cell("memory", "highway", "dense", 4), 1.0)
    rows += memory(cell("memory", "highway", "dense", 4, block_options=json.dumps({"gate_bias": -2})), 2.0)
    assert list(Results(frame_of(rows)).memory()["block"]) == ["highway", "highway gate_bias=-2"]


def test_a_frame_that_is_empty_or_no_results_is_refused():
    with pytest.raises(NothingMeasured):
        prepared(frame_of([]))
    with pytest.raises(BadInput, match="no column"):
        prepared(pd.DataFrame({"value": [1.0]}))
