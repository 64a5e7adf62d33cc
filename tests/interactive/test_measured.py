"""What a run's rows answer: frames, the best connection, and what changed."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from torch import nn

import highway_bench as hb
from highway_bench.blocks import blocks
from highway_bench.data import make_dataset
from highway_bench.errors import BadInput, NothingMeasured, UnknownName
from highway_bench.measure.statistics import wilson
from highway_bench.plan.grid import Grid, Sizes
from highway_bench.plan.profiles import Profile
from tests.inline_engine import InlineEngine

SIZES = Sizes({"vector": 8}, {"vector": 32})
RECIPE = {"optimiser": "sgd", "rate": 0.1, "momentum": 0.9, "decay": 1.0, "steps": 30, "threshold": 0.9}
TRAINED = {"families": ("dense",), "on_cpu": SIZES, "dataset": "digits", "recipe": RECIPE}
TINY = Profile(
    "tiny",
    "",
    (
        Grid(task="trainability", depths=(1, 2), seeds=range(5), **TRAINED),
        Grid(task="gates", depths=(2,), **TRAINED),
        Grid(task="memory", families=("dense",), on_cpu=SIZES, phases=("train-step",)),
        Grid(
            task="throughput",
            families=("dense",),
            on_cpu=SIZES,
            phases=("forward",),
            recipe={"seconds": 0.02, "samples": 3, "processes": 1},
        ),
    ),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    engine = InlineEngine(folder)
    return hb.run(profile=TINY, block=["plain", "highway", "residual"], engine=engine, store=folder / "store.sqlite")


def test_no_column_hides_a_name_of_pandas(results):
    frames = [results.rows, results.curves(), results.success(), results.gates(), results.step_times()]
    for frame in [*frames, results.memory(), hb.compare(results, results), *results.tables().values()]:
        assert not frame.empty
        assert {*frame.columns} & {*dir(pd.DataFrame)} == set()
        assert frame.columns.is_unique


def test_options_and_recipes_are_columns(results):
    trained = results.rows[results.rows["task"] == "trainability"]
    assert set(trained["recipe_rate"]) == {0.1}
    assert set(results.rows["execution"]) == {"eager"}
    others = results.rows.drop(columns=["samples", "paired"]).astype(str)
    assert not [name for name in others if others[name].str.startswith('{"').any()]


def test_panels_of_the_page_are_drawn_into_axes_of_the_user(results):
    assert {"success-by-depth", "loss-by-depth", "layer-bytes"} >= {*results.plot()}
    ax = Figure().subplots()
    assert results.plot("loss-by-depth", ax) is ax
    assert ax.has_data()
    named = results.success().iloc[0]
    for words in (
        {"block": named["block"], "family": named["family"]},
        {"panel": "plain", "block": [blocks.get("plain").cls, "highway"]},
    ):
        assert len(results.plot("success-by-depth", **words).lines) > 0


@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("success-by-depth", BadInput, r"panel= names one of .*plain"),
        ("loss-by-dept", UnknownName, "loss-by-depth"),
        ("signal-by-layer", NothingMeasured, "propagation"),
    ],
)
def test_what_cannot_be_drawn(results, name, error, says):
    with pytest.raises(error, match=says):
        results.plot(name)


def test_curves_have_every_seed_and_point(results):
    curves = results.curves()
    assert set(curves.groupby(["block", "depth", "seed"], observed=True).size()) == {30}
    assert len(curves) == 3 * 2 * 5 * 30
    assert np.isfinite(curves["loss"]).all()


def test_success_is_k_of_n_with_wilsons_interval(results):
    success = results.success()
    final = results.rows[(results.rows["metric"] == "success") & (results.rows["task"] == "trainability")]
    counts = final.groupby(["block", "depth"], observed=True)["value"].agg(["sum", "size"])
    for row in success.to_dict("records"):
        assert (row["k"], row["n"]) == tuple(counts.loc[(row["block"], row["depth"])])
        assert (row["low"], row["high"]) == pytest.approx(wilson(int(row["k"]), 5))


def test_step_times_are_in_milliseconds(results):
    table = results.step_times()
    stored = results.stored[results.stored["metric"] == "step_time"]
    assert sorted(table["ms"]) == pytest.approx(sorted(1e3 * stored["value"]))
    assert {"threads", "execution"} <= {*table.columns}


def test_gates_by_layer(results):
    gates = results.gates()
    assert set(gates.loc[gates["block"] == "highway", "layer"]) == {1, 2}
    assert gates.loc[gates["block"] == "highway", "gate_activity"].between(0, 1).all()


def test_what_is_shown_is_tables(results):
    lines = repr(results).splitlines()
    assert len(lines) <= 30
    html = results._repr_html_()
    for title, table in results.tables().items():
        assert any(line.startswith(title) for line in lines)
        assert title in html
        for name in table:
            assert f"<th>{name}</th>" in html
        value = f"{table.select_dtypes('float').iloc[0, -1]:.3g}"
        assert value in html
        assert value in repr(results)


@pytest.mark.parametrize("block", ["plain", "highway", "residual"])
def test_the_best_trains_in_plain_torch_to_what_was_measured(results, block):
    """As its runs did: the same start, data and steps give a final loss within the interval."""
    only = hb.MeasuredRows(results.stored[results.stored["block"] == block], results.runs)
    best = only.best(depth=2)
    assert best.cell.block == block
    assert set(map(type, best.build(width=4).modules())) == set(map(type, hb.build(block, width=4, depth=2).modules()))
    losses = []
    data = make_dataset(best.cell.dataset).load(seed=0).train
    for seed in range(5):
        torch.manual_seed(seed)
        network = best.build(whole=True, seed=seed)
        optimiser = torch.optim.SGD(network.parameters(), lr=best.recipe["rate"], momentum=best.recipe["momentum"])
        tail = []
        for _ in range(best.recipe["steps"]):
            chosen = torch.randint(len(data.inputs), (best.cell.batch_size,))
            loss = nn.functional.cross_entropy(network(data.inputs[chosen]), data.targets[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            tail.append(loss.item())
        losses.append(math.log(tail[-1]))
    assert best.low < math.exp(sum(losses) / len(losses)) < best.high


def test_the_best_has_the_rate_of_its_runs(results):
    """Also where one was chosen for each connection."""
    recipes = results.stored["recipe"].astype(object).str.replace('"rate"', '"own_rate":true,"rate"')
    best = hb.MeasuredRows(results.stored.assign(recipe=recipes), results.runs).best(depth=2)
    assert best.cell.recipe["rate"] == "tuned"
    assert best.recipe["rate"] == best.lr == 0.1
    assert best.label in repr(best)


def test_the_best_of_several_depths(results):
    for depth in (None, 7):
        with pytest.raises(BadInput, match="1, 2"):
            results.best(depth=depth)


def test_compare(results):
    """Halved losses are better by the paired judge, equal bytes are equal."""
    changed = results.stored.copy()
    changed.loc[changed["metric"] == "final_loss", "value"] *= 0.5
    table = hb.compare(results, changed)
    losses = table[(table["metric"] == "final_loss") & (table["task"] == "trainability")]
    assert set(losses["word"]) == {"better"}
    assert losses[["ratio", "low", "high"]].to_numpy() == pytest.approx(0.5)
    assert set(table.loc[table["task"] == "memory", "word"]) == {"equal"}
    with pytest.raises(NothingMeasured):
        hb.compare(results, changed.assign(depth=9))
    assert set(hb.compare(results, results).query("task == 'trainability'")["word"]) == {"equal"}


def test_a_result_says_why_cells_failed_and_tells_starts_apart(results):
    rows = results.stored.assign(status="failed", message="out of luck")
    assert any("failed: out of luck" in line for line in hb.MeasuredRows(rows, results.runs).headlines())
    other = results.stored.assign(start="depth-aware", digest="other " + results.stored["digest"].astype(str))
    both = hb.MeasuredRows(pd.concat([results.stored, other]), results.runs)
    assert set(both.curves()["block"]) == set(both.success()["block"])


def test_versions_of_a_cells_layer_are_one_family(results):
    options = '{"kind":"vector"}'
    before, after = (
        results.stored.assign(family=f"__main__:Layer-{digits}", family_options=options)
        for digits in ("0a1b2c", "ffffff")
    )
    other_start = before.assign(start="depth-aware", digest="other " + before["digest"].astype(str))
    table = hb.compare(pd.concat([before, other_start]), after)
    assert set(table["family"]) == {"__main__:Layer kind=vector"}
    assert set(table["block"]) == {"plain", "highway", "residual"}


def test_a_stop_returns_the_rows_so_far(tmp_path):
    store = tmp_path / "store.sqlite"
    words = {"profile": TINY, "block": ["plain", "highway"], "store": store}
    stopped = hb.run("trainability", engine=InlineEngine(tmp_path, most=6), **words)
    done = stopped.stored["digest"].nunique()
    assert 0 < done < 20
    assert stopped.note == f"stopped after {done} of 20 cells, trials included: the same call goes on"
    assert stopped.note in repr(stopped)
    assert hb.run("trainability", engine=InlineEngine(tmp_path), **words).stored["digest"].nunique() == 20


def test_lists():
    assert hb.list_blocks().loc["highway", "equation"].startswith("y = ")
    assert "dense" in hb.list_families().index
    assert "final_loss" in hb.list_tasks().loc["trainability", "metrics"]
    assert pd.isna(hb.list_datasets().loc["digits", "missing"])


def test_a_plan_says_what_it_costs():
    assert len(repr(hb.Plan.of(TINY, hb.Selection.of("memory", block="plain"))).splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "says"),
    [({"width": [16]}, "width must be a whole"), ({"depth": "2"}, "depth must be a whole"), ({"widht": 16}, "width")],
)
def test_build_refuses_in_a_line(words, says):
    with pytest.raises(BadInput, match=says):
        hb.build("residual", "dense", **{"width": 16, "depth": 2} | words)
