"""The committed rows of this checkout: whole files, at most 10 MB in all, and found again after an import."""

import importlib
import sys
from pathlib import Path

import pytest

from highway_bench.cell import Cell
from highway_bench.execution import schedule
from highway_bench.execution.schedule import Schedule, with_needs
from highway_bench.provenance import Identity
from highway_bench.registry import load_plugin
from highway_bench.results import LATER_ATTEMPT, Store, import_rows
from highway_bench.results.parquet import ParquetRows
from highway_bench.results.schema import OWN
from highway_bench.studies.reproduce.base import reproductions
from highway_bench.tasks import tasks

DATA = Path(__file__).parents[2] / "docs/data"
FILES = sorted(DATA.rglob("*.parquet"))
MOST_BYTES = 10_000_000

pytestmark = pytest.mark.skipif(not FILES, reason="no rows are committed yet")


def test_committed_rows_are_whole_and_small():
    """Rows of one attempt differ in their own columns alone: a store reads the others once for each attempt."""
    assert sum(path.stat().st_size for path in FILES) <= MOST_BYTES
    for path in FILES:
        exported = ParquetRows(path)
        assert exported.runs()
        frame = exported.frame()
        assert set(frame["run_id"]) <= set(exported.runs())
        later = frame["axis"] == LATER_ATTEMPT
        shared = frame.drop(columns=list(OWN)).assign(later=later).drop_duplicates()
        assert not shared.duplicated(["digest", "later"]).any(), path


@pytest.mark.slow
def test_every_committed_cell_is_found_again(tmp_path, monkeypatch):
    """Every profile and study, run on the machine that measured it, measures nothing again of what it measured.

    What an older version of its task measured is measured again.
    """
    of_studies = [plugin for name in reproductions.names() for plugin in reproductions.get(name).plugins]
    for plugin in ("highway_bench.peers.task", *of_studies):  # which have tasks of their own
        load_plugin(plugin)
        if plugin not in map(tasks.module_of, tasks.names()):  # another test has unregistered what was imported
            importlib.reload(sys.modules[plugin])
    import_rows(tmp_path / "all.sqlite", DATA)
    with Store(tmp_path / "all.sqlite", read_only=True) as store:
        rows = store.frame().drop_duplicates("digest").astype(object)
        lost = set()
        for (machine, torch), part in rows.where(rows.notna(), None).groupby(["machine", "torch"]):
            where = Identity(machine, None, torch)
            monkeypatch.setattr(schedule, "identity", lambda device, where=where: where)
            planned = Schedule(store)
            versions = {Cell.of_columns(row): row["task_version"] for row in part.to_dict("records")}
            planned.add(with_needs(versions))
            planned.ready()
            lost |= {cell for cell in versions if not planned.items[cell].stored}
            assert {cell for cell in lost & versions.keys() if versions[cell] == tasks.get(cell.task).version} == set()
        assert len(lost) == 2  # of keras-lecture
