"""``results prune`` removes the rows of a cell's older source, and nothing else."""

import sqlite3
from contextlib import closing

import pytest

from highway_bench.results import Store, row
from tests.inline_engine import cell_of


def put(store, digest, day, *, block="plain", machine="cpu-a-2c"):
    """Two rows of the cell of ``block`` on a machine, measured on a day under the digest of that day's source."""
    cell = cell_of("cost", block=block)
    shared = cell.columns() | {"digest": digest, "machine": machine, "status": "ok", "time_utc": f"2026-01-0{day}"}
    store.put(digest, [row(**shared, metric=metric, value=float(day)) for metric in ("params", "flops")])


@pytest.fixture
def pruned(here):
    """A store with two older digests and five that a report shows."""
    path = here / "s.sqlite"
    with Store(path) as store:
        put(store, "older", 1)
        put(store, "newer", 2)
        put(store, "elsewhere", 1, machine="cpu-b-64c")  # another machine's rows of the same cell
        put(store, "only", 1, block="highway")
        put(store, "undone", 1, block="residual")
        put(store, "edit", 2, block="residual")
        put(store, "same", 1, block="pre-norm")
        # An edit was undone: the last run requested the digest from before it.
        store.add_run("last", {"started": "2026-01-03", "digests": ["undone", "newer", "only", "same"]})
    return path


def stored(path):
    with Store(path, read_only=True) as store:
        assert store.problems() == []
        assert list(store.runs()) == ["last"]
        digests = [one["digest"] for one in store.rows()]
    return {digest: digests.count(digest) for digest in digests}


def test_prune(invoke, pruned):
    before = stored(pruned)
    done = invoke("results prune --dry-run --store", pruned)
    assert done.exit_code == 0
    assert "4 rows of 2 cells" in done.stdout
    assert stored(pruned) == before
    done = invoke("results prune --store", pruned)
    assert "4 rows of 2 cells" in done.stdout
    assert stored(pruned) == {"newer": 2, "elsewhere": 2, "only": 2, "undone": 2, "same": 2}
    done = invoke("results prune --store", pruned)
    assert "0 rows of 0 cells" in done.stdout


def test_rows_without_a_time_are_the_oldest(invoke, pruned):
    with closing(sqlite3.connect(pruned)) as db, db:
        db.execute("UPDATE rows SET time_utc = NULL WHERE digest = 'edit'")
    done = invoke("results prune --dry-run --store", pruned)
    assert done.exit_code == 0, done.output
    assert "4 rows of 2 cells" in done.stdout


def test_runs_at_an_earlier_choice_of_the_learning_rate_stay(invoke, here):
    """Reports leave them out, but their source is the newest."""
    path = here / "rates.sqlite"
    cell = cell_of("trainability")
    with Store(path) as store:
        for day, rate in ((1, 0.3), (2, 0.1)):
            chosen = cell.but(recipe={"rate": rate, "own_rate": True}).columns()
            shared = chosen | {"digest": str(rate), "machine": "m", "status": "ok", "time_utc": f"2026-01-0{day}"}
            store.put(str(rate), [row(**shared, metric="final_loss", value=rate)])
    done = invoke("results prune --store", path)
    assert "0 rows of 0 cells" in done.stdout
