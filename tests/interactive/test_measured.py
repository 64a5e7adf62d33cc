"""What a run's rows answer: frames, the best connection, and what changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

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
TRAINED: dict[str, Any] = {"families": ("dense",), "on_cpu": SIZES, "dataset": "digits", "recipe": RECIPE}
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
def results(tmp_path_factory: pytest.TempPathFactory) -> hb.MeasuredRows:
    folder = tmp_path_factory.mktemp("measured")
    engine = InlineEngine(folder)
    return hb.run(profile=TINY, block=["plain", "highway", "residual"], engine=engine, store=folder / "store.sqlite")


def test_no_column_hides_a_name_of_pandas(results: hb.MeasuredRows) -> None:
    frames = [results.rows, results.curves(), results.success(), results.gates(), results.step_times()]
    for frame in [*frames, results.memory(), hb.compare(results, results), *results.tables().values()]:
        assert not frame.empty
        assert {*frame.columns} & {*dir(pd.DataFrame)} == set()
        assert frame.columns.is_unique


def test_options_and_recipes_are_columns(results: hb.MeasuredRows) -> None:
    trained = results.rows[results.rows["task"] == "trainability"]
    assert set(trained["recipe_rate"]) == {0.1}
    assert set(results.rows["execution"]) == {"eager"}
    others = results.rows.drop(columns=["samples", "paired"]).astype(str)
    assert not [name for name in others if others[name].str.startswith('{"').any()]


def test_panels_of_the_page_are_drawn_into_axes_of_the_user(results: hb.MeasuredRows) -> None:
    names = results.plot()
    assert {"success-by-depth", "loss-by-depth", "layer-bytes"} >= {*names} - {"signal-by-layer"}
    ax = Figure().subplots()
    assert results.plot("loss-by-depth", ax) is ax
    assert ax.has_data()
    assert len(results.plot("success-by-depth", block="plain").lines) > 0
    named = results.success().iloc[0]
    assert results.plot("success-by-depth", block=named["block"], family=named["family"]).has_data()
    assert results.plot("success-by-depth", panel="plain", block=[blocks.get("plain").cls, "highway"]).has_data()
    with pytest.raises(BadInput, match=r"panel= names one of .*plain"):
        results.plot("success-by-depth")
    with pytest.raises(UnknownName, match="loss-by-depth"):
        results.plot("loss-by-dept")
    with pytest.raises(NothingMeasured, match="propagation"):
        results.plot("signal-by-layer")


def test_curves_have_every_seed_and_point(results: hb.MeasuredRows) -> None:
    curves = results.curves()
    assert set(curves.groupby(["block", "depth", "seed"], observed=True).size()) == {30}
    assert len(curves) == 3 * 2 * 5 * 30
    assert np.isfinite(curves["loss"]).all()


def test_success_is_k_of_n_with_wilsons_interval(results: hb.MeasuredRows) -> None:
    success = results.success()
    final = results.rows[(results.rows["metric"] == "success") & (results.rows["task"] == "trainability")]
    for row in success.to_dict("records"):
        same = final[(final["block"] == row["block"]) & (final["depth"] == row["depth"])]
        assert (row["k"], row["n"]) == (same["value"].sum(), len(same)) == (row["k"], 5)
        assert (row["low"], row["high"]) == pytest.approx(wilson(int(row["k"]), 5))


def test_step_times_are_in_milliseconds(results: hb.MeasuredRows) -> None:
    table = results.step_times()
    stored = results.stored[results.stored["metric"] == "step_time"]
    assert sorted(table["ms"]) == pytest.approx(sorted(1e3 * stored["value"]))
    assert {"threads", "execution"} <= {*table.columns}


def test_gates_by_layer(results: hb.MeasuredRows) -> None:
    gates = results.gates()
    assert set(gates.loc[gates["block"] == "highway", "layer"]) == {1, 2}
    assert gates.loc[gates["block"] == "highway", "gate_activity"].between(0, 1).all()


def test_what_is_shown_is_tables(results: hb.MeasuredRows) -> None:
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
def test_the_best_trains_in_plain_torch_to_what_was_measured(results: hb.MeasuredRows, block: str) -> None:
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


def test_the_best_has_the_rate_of_its_runs(results: hb.MeasuredRows) -> None:
    """Also where one was chosen for each connection."""
    recipes = results.stored["recipe"].astype(object).str.replace('"rate"', '"own_rate":true,"rate"')
    best = hb.MeasuredRows(results.stored.assign(recipe=recipes), results.runs).best(depth=2)
    assert best.cell.recipe["rate"] == "tuned"
    assert best.recipe["rate"] == best.lr == 0.1
    assert repr(best).startswith(f"{best.label}, depth 2, width {best.cell.width}, lr 0.1: {best.loss:.3g} (")


def test_the_best_of_several_depths(results: hb.MeasuredRows) -> None:
    with pytest.raises(BadInput, match="several of depth: name one of 1, 2"):
        results.best()
    with pytest.raises(BadInput, match="no network was trained with depth 7; there is 1, 2"):
        results.best(depth=7)


def test_compare(results: hb.MeasuredRows) -> None:
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


def test_versions_of_a_cells_layer_are_one_family(results: hb.MeasuredRows) -> None:
    options = '{"kind":"vector"}'
    before, after = (
        results.stored.assign(family=f"__main__:Layer-{digits}", family_options=options)
        for digits in ("0a1b2c", "ffffff")
    )
    other_start = before.assign(start="depth-aware", digest="other " + before["digest"].astype(str))
    table = hb.compare(pd.concat([before, other_start]), after)
    assert set(table["family"]) == {"__main__:Layer kind=vector"}
    assert set(table["block"]) == {"plain", "highway", "residual"}


def test_a_stop_returns_the_rows_so_far(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    words: dict[str, Any] = {"profile": TINY, "block": ["plain", "highway"], "store": store}
    stopped = hb.run("trainability", engine=InlineEngine(tmp_path, most=6), **words)
    done = stopped.stored["digest"].nunique()
    assert 0 < done < 20
    assert stopped.note == f"stopped after {done} of 20 cells: the same call goes on"
    assert stopped.note in repr(stopped)
    assert hb.run("trainability", engine=InlineEngine(tmp_path), **words).stored["digest"].nunique() == 20


def test_lists() -> None:
    assert hb.list_blocks().loc["highway", "equation"].startswith("y = ")
    assert "arXiv" in hb.list_blocks().loc["highway", "source"]
    assert "dense" in hb.list_families().index
    assert "final_loss" in hb.list_tasks().loc["trainability", "metrics"]
    assert pd.isna(hb.list_datasets().loc["digits", "missing"])


def test_a_plan_says_what_it_costs() -> None:
    text = repr(hb.Plan.of(TINY, hb.Selection.of("memory", block="plain")))
    assert len(text.splitlines()) == 5
    assert text.startswith("1 cells, 1 with")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"width": [16], "depth": 2}, "width must be a whole number, not [16]"),
        ({"width": 16, "depth": "2"}, "depth must be a whole number, not '2'"),
        ({"widht": 16, "depth": 2}, "unknown option of build 'widht'; did you mean width?"),
    ],
)
def test_build_refuses_in_a_line(words: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        hb.build("residual", "dense", **words)
    assert str(refused.value).startswith(message)
