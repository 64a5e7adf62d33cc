"""The store: whole cells or nothing, one writer, and one clear line for a file that is no store or damaged."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from highway_bench.errors import BadInput, UnknownName
from highway_bench.results import COLUMNS, LATER_ATTEMPT, SCHEMA, Store, row
from tests.results.conftest import EARLY, LATE, MIDDLE, some


def test_rows_come_back_as_they_were_put(tmp_path):
    path, put = tmp_path / "deep" / "er" / "store.sqlite", some("a", 0.1 + 0.2, None, 1e-300, block="highway", seed=3)
    for read_only in (False, True):
        with Store(path, read_only=read_only) as store:
            if not read_only:
                store.put("a", put)
            assert store.rows() == put


def test_put_replaces_a_cell_whole_or_not_at_all(store):
    store.put("a", some("a", 1.0, 2.0, 3.0))
    store.put("b", some("b", 9.0))
    store.put("a", some("a", 4.0))
    for wrong in (some("a", 5.0) * 2, some("b", 5.0), some("a", float("inf")), some("a", float("nan"))):
        with pytest.raises(ValueError, match=r"cannot be stored: UNIQUE|another digest|not finite"):
            store.put("a", wrong)
    assert [one["value"] for one in store.rows()] == [9.0, 4.0]


def attempt(status, time=EARLY, **columns):
    """Rows of one attempt at cell ``a``: two metrics and a curve where it has a result, two reasons where not."""
    value = None if status in {"crashed", "failed", "oom", "skipped"} else 1.0
    shared = {"digest": "a", "time_utc": time, "status": status, "run_id": f"run {status}", **columns}
    rows = [
        row(**shared, metric=metric, value=value, message=None if value else f"why {status}")
        for metric in ("time", "loss")
    ]
    return rows if value is None else [*rows, row(**shared, metric="loss", axis="step", index=1.0, value=value)]


def in_part(time=EARLY):
    """Rows of an attempt at cell ``a`` of which one metric failed."""
    first, second, *_ = attempt("ok", time, run_id="run in part")
    return [first, second | {"status": "failed", "value": None, "message": "value is nan"}]


def attempts_of(rows):
    """The attempts behind ``rows``: the statuses of results, then that of a later attempt."""
    return sorted({(row["axis"].replace("step", ""), row["status"]) for row in rows})


@pytest.mark.parametrize("later", ["crashed", "failed", "oom", "skipped"])
@pytest.mark.parametrize("result", ["ok", "diverged", "stalled"])
def test_a_failure_is_put_next_to_a_result(store, result, later):
    for status in (result, "timeout", later):
        store.put("a", attempt(status))
    rows = store.rows()
    assert rows[:3] == attempt(result)
    assert [(r["status"], r["message"], r["run_id"], r["axis"], r["value"]) for r in rows[3:]] == [
        (later, f"why {later}", f"run {later}", LATER_ATTEMPT, None)
    ]  # one, the last
    assert store.digests() == {"a": result if later == "skipped" else later}  # a failure is tried again
    assert store.scalars("a") == {"time": 1.0, "loss": 1.0}
    again = attempt("ok", run_id="again")
    store.put("a", again)
    assert store.rows() == again


def test_a_result_replaces_a_failure(store):
    for status in ("crashed", "skipped", "oom", "diverged", "ok"):
        store.put("a", attempt(status))
        assert store.rows() == attempt(status)


@pytest.mark.parametrize("later", ["crashed", "skipped"])
def test_a_part_of_a_result_is_more_than_nothing_and_less_than_a_result(store, later):
    store.put("a", attempt(later))
    store.put("a", in_part())
    assert store.rows() == in_part()
    store.put("a", attempt(later))
    assert store.rows()[:2] == in_part()
    assert [(r["status"], r["axis"]) for r in store.rows()[2:]] == [(later, LATER_ATTEMPT)]
    assert store.digests() == {"a": "crashed" if later == "crashed" else "failed"}
    newer = in_part(MIDDLE)
    store.put("a", newer)
    assert store.rows() == newer
    store.put("a", attempt("ok"))
    assert store.rows() == attempt("ok")
    store.put("a", in_part())
    assert store.rows()[:3] == attempt("ok")
    assert [(r["metric"], r["message"]) for r in store.rows(axis=LATER_ATTEMPT)] == [("loss", "value is nan")]


RESULT, STALLED, PART = [("", "ok")], [("", "stalled")], [("", "failed"), ("", "ok")]
CRASHED, SKIPPED = [(LATER_ATTEMPT, "crashed")], [(LATER_ATTEMPT, "skipped")]
MERGES = {
    "a later failure": ([("ok", EARLY)], [("crashed", LATE)], RESULT + CRASHED, 1),
    "an earlier result": ([("crashed", LATE)], [("ok", EARLY)], RESULT + CRASHED, 1),
    "an earlier failure": ([("ok", LATE)], [("crashed", EARLY)], RESULT, 0),
    "a later result": ([("crashed", EARLY)], [("ok", LATE)], RESULT, 1),
    "a later skip": ([("ok", EARLY)], [("skipped", LATE)], RESULT + SKIPPED, 1),
    "two failures": ([("crashed", EARLY)], [("oom", LATE)], [("", "oom")], 1),
    "two results": ([("ok", EARLY)], [("stalled", LATE)], STALLED, 1),
    "a result before a failure": ([("ok", EARLY), ("crashed", LATE)], [("stalled", MIDDLE)], STALLED + CRASHED, 1),
    "a result after a failure": ([("ok", EARLY), ("crashed", MIDDLE)], [("stalled", LATE)], STALLED, 1),
    "a failure that has a result": ([("stalled", LATE)], [("ok", EARLY), ("crashed", MIDDLE)], STALLED, 0),
    "a cell with both": ([], [("ok", EARLY), ("crashed", LATE)], RESULT + CRASHED, 1),
    "the same": ([("ok", EARLY), ("crashed", LATE)], [("ok", EARLY), ("crashed", LATE)], RESULT + CRASHED, 0),
    "a failure of a part": ([("in part", EARLY)], [("crashed", LATE)], PART + CRASHED, 1),
    "a part of a failure": ([("crashed", LATE)], [("in part", EARLY)], PART + CRASHED, 1),
    "a later part": ([("crashed", EARLY)], [("in part", LATE)], PART, 1),
    "a failure before a part": ([("in part", LATE)], [("crashed", EARLY)], PART, 0),
}


@pytest.mark.parametrize("case", MERGES)
def test_merging_keeps_results_and_lists_later_failures(tmp_path, case):
    here, there, expected, taken = MERGES[case]
    with Store(tmp_path / "here") as into, Store(tmp_path / "there") as other:
        for store, attempts in ((into, here), (other, there)):
            for status, time in attempts:
                store.put("a", in_part(time) if status == "in part" else attempt(status, time))
        before = other.rows()
        assert into.take([other])[0].changed == taken
        assert attempts_of(into.rows()) == expected
        assert into.take([other])[0].changed == 0
        assert other.rows() == before


def test_filters(store):
    store.put("a", some("a", 1.0, block="plain"))
    store.put("b", some("b", 2.0, block="highway", trial=1))
    for filters, digests in (
        ({"block": "highway"}, ["b"]),
        ({"trial": None}, ["a"]),
        ({"block": ["plain", "highway"], "value": 2.0}, ["b"]),
        ({"block": []}, []),
        ({"trial": [1, None]}, ["a", "b"]),
        ({"digest": ["b", *map(str, range(40_000))], "trial": [1, None]}, ["b"]),
    ):
        assert [one["digest"] for one in store.rows(**filters)] == digests
    with pytest.raises(UnknownName, match="mean block"):
        store.rows(blocks="plain")


def test_status_of_a_cell(store):
    for digest, statuses in {
        "a": ["ok", "skipped"],
        "b": ["ok", "diverged"],
        "c": ["ok", "failed", "stalled"],
        "d": ["skipped"],
    }.items():
        store.put(digest, [some(digest, 1.0, status=status, metric=status)[0] for status in statuses])
    assert store.digests() == {"a": "ok", "b": "diverged", "c": "failed", "d": "skipped"}


def test_frame(store):
    """It has the rows of every attempt, each with its own columns."""
    empty = store.frame()
    assert list(empty.columns) == list(COLUMNS)
    store.put("a", some("a", 1.0, None, run_id="first", seed=1))
    store.put("b", some("b", 3.0, run_id="first", seed=2))
    store.put("a", attempt("crashed"))  # one row, after the cell's result
    frame = store.frame()
    assert frame.dtypes.map(str).tolist() == empty.dtypes.map(str).tolist()
    for filters in ({}, {"value": 3.0}, {"run_id": "run crashed"}, {"seed": [2, None]}, {"run_id": "third"}):
        frame = store.frame(**filters).astype(object)
        assert frame.where(frame.notna(), None).to_dict("records") == store.rows(**filters)


def test_runs(store):
    store.add_run("one", {"command": ["run"], "finished": None})
    store.add_run("two", {"blocks": {"highway": {"equation": "y = H(x)·T(x) + x·(1 − T(x))"}}})
    store.add_run("one", {"command": ["run"], "finished": "now"})
    assert list(store.runs()) == ["one", "two"]
    assert store.runs()["one"]["finished"] == "now"


def in_another_process(code):
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)


def test_one_writer_and_many_readers(tmp_path):
    path = tmp_path / "s"
    with Store(path) as store:
        store.put("a", some("a", 1.0))
        with Store(path, read_only=True) as reader:
            assert len(reader.rows()) == 1
            store.put("b", some("b", 1.0))
            assert len(reader.rows()) == 2
            with pytest.raises(BadInput, match="readonly"):
                reader.put("c", some("c", 1.0))
        with pytest.raises(BadInput, match=rf"\(process {os.getpid()}\)"):
            Store(path)
        done = in_another_process(f"from highway_bench.results import Store; Store({str(path)!r})")
        assert (done.returncode, "another run" in done.stderr) == (1, True)
    Store(path).close()


def foreign(path):
    path.unlink()
    changed("CREATE TABLE songs (title TEXT)")(path)


def changed(sql):
    def change(path):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(sql)

    return change


def with_schema(schema):
    return changed(f"UPDATE meta SET value = '{schema}' WHERE name = 'schema'")


def test_a_file_without_tables_becomes_a_store_when_opened_for_writing(tmp_path):
    """A reader sees this before the process that created the file has created its tables."""
    path = tmp_path / "s.sqlite"
    path.touch()
    with pytest.raises(BadInput, match="nothing"):
        Store(path, read_only=True)
    with Store(path) as store:
        assert store.rows() == []


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign, "no highway_bench store"),
        (with_schema(SCHEMA + 1), f"schema {SCHEMA + 1}, .*{SCHEMA}"),
        (with_schema(0), "schema 0"),
        (with_schema("²"), "which schema"),
        (changed('ALTER TABLE "rows" DROP COLUMN "dtype"'), f"schema {SCHEMA}"),
    ],
)
def test_file_that_is_no_store(tmp_path, spoil, message, read_only):
    path = tmp_path / "s.sqlite"
    Store(path).close()
    spoil(path)
    before = path.read_bytes()
    for _ in range(2):  # the first one lets the lock go
        with pytest.raises(BadInput, match=message) as caught:
            Store(path, read_only=read_only).rows()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before


def test_path_that_cannot_be_a_store(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match=r"Not a directory|File exists"):
        Store(tmp_path / "file" / "s.sqlite")
    with pytest.raises(BadInput, match="it is a folder"):
        Store(tmp_path)
    with pytest.raises(BadInput, match="no store at"):
        Store(tmp_path / "absent.sqlite", read_only=True)
    assert not (tmp_path / "absent.sqlite").exists()
