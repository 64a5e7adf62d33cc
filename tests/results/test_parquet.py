"""Exported Parquet files load back as the same store; a folder of them grows by one file a run."""

import json

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.results import (
    COLUMNS,
    PROTOCOL,
    SCHEMA,
    Store,
    export,
    import_rows,
    join_into,
    row,
)
from highway_bench.results.integrity import ADDED
from highway_bench.results.parquet import RUNS_KEY, SCHEMA_KEY, ParquetRows, _packed
from tests.results.conftest import filled

RECORD = {"commit": "abc", "machines": {"cpu": "cpu-a-2c"}, "blocks": {"plain": {"equation": "y = H(x)"}}}


def cell(digest, run, time="2026-01-01", **values):
    """The rows of a cell: a scalar with samples, and a curve."""
    common = {"digest": digest, "run_id": run, "time_utc": time, "status": "ok", "message": "a “b”\n"} | values
    scalar = row(**common, metric="time", value=1 / 3, low=0.1 + 0.2, samples="[1.0,null]", recipe='{"rate":0.1}')
    return [scalar, *(row(**common, metric="loss", axis="step", index=step, value=1 / step) for step in (1, 2, 3))]


def fill(path, *cells):
    return filled(path, *cells, **RECORD)


def contents(path):
    """All rows, exactly, in an order of their own; and the runs."""
    with Store(path, read_only=True) as store:
        return sorted(json.dumps(one) for one in store.rows()), store.runs()


def changed(into, *sources):
    return sum(one.changed for one in import_rows(into, *sources).values())


def test_a_store_is_exported_and_imported_unchanged(tmp_path):
    path = fill(tmp_path / "s", cell("a", "r1"), cell("b", "r2"))
    with Store(path, read_only=True) as store:
        assert export(store, tmp_path / "all.parquet") == 8
    assert changed(tmp_path / "new", tmp_path / "all.parquet") == 2
    assert contents(tmp_path / "new") == contents(path)
    assert changed(tmp_path / "new", tmp_path / "all.parquet") == 0
    metadata = parquet.ParquetFile(tmp_path / "all.parquet").metadata.metadata
    assert set(metadata) == {SCHEMA_KEY, RUNS_KEY}
    assert b"equation" not in metadata[RUNS_KEY]  # compressed
    frame = pd.read_parquet(tmp_path / "all.parquet")
    assert list(frame) == list(COLUMNS)
    assert set(frame["protocol"]) == {PROTOCOL}
    with pytest.raises(BadInput, match="results import"):
        Store(tmp_path / "all.parquet", read_only=True)


def test_a_folder_has_one_file_with_all_results_and_runs(tmp_path):
    path, folder = fill(tmp_path / "s", cell("a", "r1"), cell("b", "r2")), tmp_path / "data"
    folder.mkdir()
    (folder / "notes.txt").touch()
    (folder / "inside").mkdir()
    with Store(path) as store:
        export(store, folder / "first.parquet")
        export(store, folder / "inside/other.parquet")
        store.add_run("odd", RECORD | {"started": "yesterday/../.."})
        store.add_run("r3", RECORD | {"started": "2026-02-03T04:05:06"})
        store.put("a", cell("a", "r3", "2026-02-03", message="again"))
        assert join_into(folder, store) == folder / "until-2026-02-03.parquet"
        assert join_into(folder, store) == folder / "until-2026-02-03.parquet"
    assert {one.name for one in folder.iterdir()} == {"until-2026-02-03.parquet", "notes.txt", "inside"}
    assert (folder / "inside/other.parquet").is_file()
    taken = import_rows(tmp_path / "new", path, folder / "until-2026-02-03.parquet", f"{folder}/../s")
    assert [one.same + one.added for one in taken.values()] == [2, 2]  # each file once
    assert contents(tmp_path / "new") == contents(path)
    (folder / "until-2026-02-03.parquet").rename(tmp_path / "no-suffix")
    assert changed(tmp_path / "again", tmp_path / "no-suffix") == 2
    with Store(tmp_path / "empty") as store, pytest.raises(NothingMeasured, match="no row for"):
        join_into(tmp_path / "again", store)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_later_failure_replaces_no_result(tmp_path, order):
    first, later = fill(tmp_path / "first", cell("a", "r1")), fill(tmp_path / "later")
    failed = row(digest="a", run_id="r2", time_utc="2026-01-02", metric="time", status="oom", message="full")
    with Store(later) as store:
        store.add_run("r2", RECORD)
        store.put("a", [failed])
    import_rows(tmp_path / "new", *((first, later)[number] for number in order))
    with Store(first) as store:
        store.put("a", [failed])
    assert contents(tmp_path / "new")[0] == contents(first)[0]


def test_files_of_older_schemas_are_read(tmp_path):
    with Store(fill(tmp_path / "s", cell("a", "r1")), read_only=True) as store:
        export(store, tmp_path / "new.parquet")
    rewritten(tmp_path / "new.parquet", tmp_path / "old.parquet", without=ADDED[4] + ADDED[5], schema=3)
    assert changed(tmp_path / "imported", tmp_path / "old.parquet") == 1
    with Store(tmp_path / "imported", read_only=True) as store:
        assert {one["protocol"] for one in store.rows()} == {None}
    assert ParquetRows(tmp_path / "old.parquet").frame()["protocol"].isna().all()


def rewritten(
    path,
    to,
    *,
    without=(),
    schema=SCHEMA,
    runs=None,
    **columns,
):
    """Write the file ``path`` to ``to`` with other metadata, without some columns, or with one value in a column."""
    table = parquet.ParquetFile(path).read()
    metadata = table.schema.metadata | {SCHEMA_KEY: str(schema)} | ({} if runs is None else {RUNS_KEY: runs})
    for name, value in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array([value] * len(table)))
    parquet.write_table(table.drop_columns(list(without)).replace_schema_metadata(metadata), to)


def test_what_is_no_export_is_one_line_and_nothing_is_written(tmp_path):
    with Store(fill(tmp_path / "s", cell("a", "r1")), read_only=True) as store:
        export(store, tmp_path / "good.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "good.parquet").read_bytes()[:-100])
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "foreign.parquet")
    for name, change in {
        "newer": {"schema": SCHEMA + 1},
        "lacking": {"without": ("value",)},
        "status": {"status": "fine"},
        "nan": {"value": float("nan")},
        "infinite": {"high": float("inf")},
        "type": {"value": "much"},
        "nested": {"block": ["plain"]},
        "version": {"schema": "four"},
        "base64": {"runs": b"\xff"},
        "records": {"runs": _packed([])},
    }.items():
        rewritten(tmp_path / "good.parquet", tmp_path / f"{name}.parquet", **change)
    (tmp_path / "empty").mkdir()
    for source, message in {
        "cut.parquet": "cut.parquet",
        "foreign.parquet": "not one",
        "newer.parquet": f"schema {SCHEMA + 1}",
        "lacking.parquet": "schema",
        "absent.parquet": "absent.parquet",
        "empty": "no Parquet file",
        "status.parquet": "unknown status",
        "nan.parquet": "not finite",
        "infinite.parquet": "a high",
        "type.parquet": "no number",
        "nested.parquet": "no known kind",
        "version.parquet": "invalid literal",
        "base64.parquet": "cannot read .*",
        "records.parquet": "records",
    }.items():
        with pytest.raises(BadInput, match=message) as raised:
            import_rows(tmp_path / "new", tmp_path / "good.parquet", tmp_path / source)
        assert "\n" not in str(raised.value)
        assert not (tmp_path / "new").exists()
    with pytest.raises(BadInput, match="nothing to import"):
        import_rows(tmp_path / "new")
