"""``run``: a frame of what was asked for, from words to rows."""

import pytest

import highway_bench as hb
from highway_bench.errors import BadInput, NothingMeasured, UnknownName
from highway_bench.execution.job import CellResult
from highway_bench.execution.runner import Summary
from highway_bench.plan.plan import Ending, Plan, endings_of
from highway_bench.plan.selection import Selection
from highway_bench.provenance import identity
from highway_bench.results import Status, Store, row
from highway_bench.tasks import Measurement
from tests.inline_engine import FakeEngine, cell_of


def recording():
    """An engine of a user's own: every cell has a peak of one byte."""
    peak = Measurement(metric="peak", value=1.0)
    return FakeEngine(
        lambda index: CellResult(index=index, status=Status.OK, measurements=(peak,), identity=identity())
    )


ONE = {"profile": "smoke", "block": "plain", "family": "dense"}


def test_run_without_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = hb.run("memory", engine=recording(), store=None, **ONE | {"block": ["plain", "highway"]}, depth=1).rows
    assert list(tmp_path.iterdir()) == []
    assert set(rows["block"]) == {"plain", "highway"}
    assert (set(rows["status"]), set(rows["depth"])) == ({"ok"}, {1})


def test_trials_and_probes_are_given_where_they_are_asked_for():
    """A store has them all; a frame has the finals, unless a task or a family has none."""
    words = ONE | {"engine": recording(), "store": None}
    rows = hb.run(["trainability", "gates", "memory"], **words).rows
    assert rows.groupby("task")["purpose"].unique().map(list).to_dict() == {
        "trainability": ["final"],
        "gates": ["probe"],
        "memory": [""],
    }
    assert set(hb.run("trainability", trials=True, **words).rows["purpose"]) == {"final", "trial"}


def test_rows_are_those_asked_for(tmp_path):
    """A store may hold more than this run's cells; what it has is given without being measured again."""
    path = tmp_path / "store.sqlite"
    words = ONE | {"store": path, "engine": recording()}
    hb.run("memory", depth=[1, 2], **words)
    rows = hb.run("memory", depth=2, **words).rows
    assert set(rows["depth"]) == {2}
    with Store(path, read_only=True) as store:
        assert [run["measured"] for run in store.runs().values()] == [2, 0]
        assert {row["depth"] for row in store.rows()} == {1, 2}


def test_before_anything_is_measured(tmp_path):
    with pytest.raises(BadInput, match="unknown block"):
        hb.run(block="higway", store=tmp_path / "store.sqlite")
    with pytest.raises(NothingMeasured):
        hb.run("trainability", profile="smoke", family="dense-pair", store=tmp_path / "store.sqlite")
    with pytest.raises(BadInput, match="did you mean block"):
        hb.run(blok="plain", store=tmp_path / "store.sqlite")
    assert not (tmp_path / "store.sqlite").exists()


@pytest.mark.parametrize(("run", "ended", "why"), [("now", Status.CRASHED, "left with 3"), ("next", Status.OK, None)])
def test_a_failure_next_to_a_result_is_the_end_of_its_own_run_alone(tmp_path, run, ended, why):
    cell = cell_of("memory")
    with Store(tmp_path / "store.sqlite") as store:
        store.put("a", [row(digest="a", run_id="before", metric="peak", value=1.0, status="ok")])
        store.put("a", [row(digest="a", run_id="now", metric="peak", status="crashed", message="left with 3")])
        found = endings_of(store.frame(), Summary(run, {}, 0, 1, 0.0, {cell: "a"}))
    assert found == [Ending(cell, ended, why)]


def test_an_engine_through_every_public_entrance():
    engine = recording()
    hb.run("memory", engine=engine, store=None, depth=1, **ONE)
    selection = Selection.of("memory", block="plain", family="dense", depth=1)
    assert Plan.of("smoke", selection).run(engine=engine).summary.measured == 1
    assert [cell.task for cell in engine.cells] == ["memory"] * 2
    with pytest.raises(UnknownName, match="did you mean local"):
        hb.run("memory", engine="lokal", store=None, **ONE)
    for workers in (0, -3):
        with pytest.raises(BadInput, match="workers"):
            hb.run("memory", workers=workers, store=None, **ONE)
