"""The store: whole cells or nothing, one writer, and one clear line for a file that is no store or damaged."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from highway_bench.errors import BadInput, UnknownName
from highway_bench.results import COLUMNS, LATER_ATTEMPT, SCHEMA, Row, Store, row


def some(digest: str, *values: float | None, time: str = "2026-01-01T00:00:00", **columns: object) -> list[Row]:
    return [
        row(
            **{
                "digest": digest,
                "metric": "time",
                "axis": "step",
                "index": float(index),
                "value": value,
                "time_utc": time,
                "status": "ok",
                "run_id": "r",
                "samples": json.dumps([value]),
                **columns,
            }
        )
        for index, value in enumerate(values)
    ]


def test_rows_come_back_as_they_were_put(tmp_path: Path) -> None:
    put = some("a", 0.1 + 0.2, None, 1e-300, block="highway", seed=3)
    with Store(tmp_path / "deep" / "er" / "store.sqlite") as store:
        store.put("a", put)
        assert store.rows() == put
    with Store(tmp_path / "deep" / "er" / "store.sqlite", read_only=True) as store:
        assert store.rows() == put


def test_put_replaces_a_cell_whole_or_not_at_all(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", some("a", 1.0, 2.0, 3.0))
        store.put("b", some("b", 9.0))
        store.put("a", some("a", 4.0))
        assert [r["value"] for r in store.rows(digest="a")] == [4.0]
        for wrong in (some("a", 5.0) * 2, some("b", 5.0), some("a", float("inf")), some("a", float("nan"))):
            with pytest.raises(ValueError, match=r"cannot be stored: UNIQUE|another digest|not finite"):
                store.put("a", wrong)
        assert [r["value"] for r in store.rows()] == [9.0, 4.0]


def attempt(status: str, time: str = "2026-01-01T00:00:00", **columns: object) -> list[Row]:
    """Rows of one attempt at cell ``a``: two metrics and a curve where it has a result, two reasons where not."""
    value = None if status in {"crashed", "failed", "oom", "skipped"} else 1.0
    shared = {"digest": "a", "time_utc": time, "status": status, "run_id": f"run {status}", **columns}
    rows = [
        row(**shared, metric=metric, value=value, message=None if value else f"why {status}")
        for metric in ("time", "loss")
    ]
    return rows if value is None else [*rows, row(**shared, metric="loss", axis="step", index=1.0, value=value)]


def attempts_of(rows: list[Row]) -> list[tuple[str, str, str | None]]:
    """The attempts behind ``rows``: run, status and axis, each once."""
    return sorted(
        {(row["run_id"], row["status"], row["axis"]) for row in rows}
        - {(row["run_id"], row["status"], "step") for row in rows}
    )


@pytest.mark.parametrize("later", ["crashed", "failed", "oom", "skipped"])
@pytest.mark.parametrize("result", ["ok", "diverged", "stalled"])
def test_a_failure_is_put_next_to_a_result(tmp_path: Path, result: str, later: str) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", attempt(result))
        store.put("a", attempt("timeout"))
        store.put("a", attempt(later))
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


def test_a_result_replaces_a_failure(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        for status in ("crashed", "skipped", "oom", "diverged", "ok"):
            store.put("a", attempt(status))
            assert store.rows() == attempt(status)


def test_an_attempt_that_failed_in_part_is_no_result(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", attempt("ok"))
        ended = attempt("ok", run_id="again")
        store.put("a", [ended[0], ended[1] | {"status": "failed", "value": None, "message": "value is nan"}])
        assert store.rows()[:3] == attempt("ok")
        assert [(r["metric"], r["message"]) for r in store.rows(axis=LATER_ATTEMPT)] == [("loss", "value is nan")]


def in_part(time: str = "2026-01-01T00:00:00") -> list[Row]:
    """Rows of an attempt at cell ``a`` of which one metric failed."""
    first, second, *_ = attempt("ok", time, run_id="run in part")
    return [first, second | {"status": "failed", "value": None, "message": "value is nan"}]


@pytest.mark.parametrize("later", ["crashed", "skipped"])
def test_a_part_of_a_result_is_more_than_nothing(tmp_path: Path, later: str) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", attempt(later))
        store.put("a", in_part())
        assert store.rows() == in_part()
        store.put("a", attempt(later))
        assert store.rows()[:2] == in_part()
        assert [(r["status"], r["run_id"], r["axis"]) for r in store.rows()[2:]] == [
            (later, f"run {later}", LATER_ATTEMPT)
        ]
        assert store.digests() == {"a": "crashed" if later == "crashed" else "failed"}
        newer = in_part("2026-01-02T00:00:00")
        store.put("a", newer)
        assert store.rows() == newer
        store.put("a", attempt("ok"))
        assert store.rows() == attempt("ok")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("part_is_later", [False, True])
def test_merging_keeps_a_part_of_a_result(tmp_path: Path, swapped: bool, part_is_later: bool) -> None:
    days = (LATE, EARLY) if part_is_later else (EARLY, LATE)
    part, crash = in_part(days[0]), attempt("crashed", days[1])
    with Store(tmp_path / "here") as into, Store(tmp_path / "there") as other:
        for store, rows in zip((other, into) if swapped else (into, other), (part, crash), strict=True):
            store.put("a", rows)
        into.take(other)
        assert into.rows()[:2] == part
        assert [(r["status"], r["axis"]) for r in into.rows()[2:]] == (
            [] if part_is_later else [("crashed", LATER_ATTEMPT)]
        )
        assert into.take(other)[0].changed == 0


EARLY, MIDDLE, LATE = (f"2026-01-0{day}T00:00:00" for day in (1, 2, 3))
CRASHED_LATER = [("run crashed", "crashed", LATER_ATTEMPT), ("run ok", "ok", "")]
MERGES = {
    "a later failure": ([("ok", EARLY)], [("crashed", LATE)], CRASHED_LATER, 1),
    "an earlier result": ([("crashed", LATE)], [("ok", EARLY)], CRASHED_LATER, 1),
    "an earlier failure": ([("ok", LATE)], [("crashed", EARLY)], [("run ok", "ok", "")], 0),
    "a later result": ([("crashed", EARLY)], [("ok", LATE)], [("run ok", "ok", "")], 1),
    "a later skip": (
        [("ok", EARLY)],
        [("skipped", LATE)],
        [("run ok", "ok", ""), ("run skipped", "skipped", LATER_ATTEMPT)],
        1,
    ),
    "two failures": ([("crashed", EARLY)], [("oom", LATE)], [("run oom", "oom", "")], 1),
    "two results": ([("ok", EARLY)], [("stalled", LATE)], [("run stalled", "stalled", "")], 1),
    "a result before a failure": (
        [("ok", EARLY), ("crashed", LATE)],
        [("stalled", MIDDLE)],
        [("run crashed", "crashed", LATER_ATTEMPT), ("run stalled", "stalled", "")],
        1,
    ),
    "a result after a failure": (
        [("ok", EARLY), ("crashed", MIDDLE)],
        [("stalled", LATE)],
        [("run stalled", "stalled", "")],
        1,
    ),
    "a failure that has a result": (
        [("stalled", LATE)],
        [("ok", EARLY), ("crashed", MIDDLE)],
        [("run stalled", "stalled", "")],
        0,
    ),
    "a cell with both": ([], [("ok", EARLY), ("crashed", LATE)], CRASHED_LATER, 1),
    "the same": ([("ok", EARLY), ("crashed", LATE)], [("ok", EARLY), ("crashed", LATE)], CRASHED_LATER, 0),
}


@pytest.mark.parametrize("case", MERGES)
def test_merging_keeps_results_and_lists_later_failures(tmp_path: Path, case: str) -> None:
    here, there, expected, taken = MERGES[case]
    with Store(tmp_path / "here") as into, Store(tmp_path / "there") as other:
        for store, attempts in ((into, here), (other, there)):
            for status, time in attempts:
                store.put("a", attempt(status, time))
        before = other.rows()
        assert into.take(other)[0].changed == taken
        assert attempts_of(into.rows()) == expected
        assert into.take(other)[0].changed == 0
        assert other.rows() == before


def test_filters(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", some("a", 1.0, block="plain"))
        store.put("b", some("b", 2.0, block="highway", trial=1))
        assert [r["digest"] for r in store.rows(block="highway")] == ["b"]
        assert [r["digest"] for r in store.rows(trial=None)] == ["a"]
        assert [r["digest"] for r in store.rows(block=["plain", "highway"], value=2.0)] == ["b"]
        assert store.rows(block=[]) == []
        assert [r["digest"] for r in store.rows(trial=[1, None])] == ["a", "b"]
        assert [r["digest"] for r in store.rows(digest=["b", *map(str, range(40_000))], trial=[1, None])] == ["b"]
        with pytest.raises(UnknownName, match="unknown column 'blocks'; did you mean block"):
            store.rows(blocks="plain")


def test_status_of_a_cell(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        for digest, statuses in {
            "a": ["ok", "skipped"],
            "b": ["ok", "diverged"],
            "c": ["ok", "failed", "stalled"],
            "d": ["skipped"],
        }.items():
            store.put(digest, [some(digest, 1.0, status=status, metric=status)[0] for status in statuses])
        assert store.digests() == {"a": "ok", "b": "diverged", "c": "failed", "d": "skipped"}


def test_scalars(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", [*some("a", 1.0), row(digest="a", metric="loss", value=0.5, status="ok")])
        assert store.scalars("a") == {"loss": 0.5}


def test_frame(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        empty = store.frame()
        assert list(empty.columns) == list(COLUMNS)
        store.put("a", some("a", 1.5, None, depth=10))
        frame = store.frame(digest="a")
    assert frame.dtypes.map(str).tolist() == empty.dtypes.map(str).tolist()
    assert frame["depth"].tolist() == [10, 10]
    assert frame["seq_len"].isna().all()
    assert frame["value"].isna().tolist() == [False, True]
    assert frame["samples"].tolist() == ["[1.5]", "[null]"]


def test_a_frame_has_the_rows_of_every_attempt_with_their_own_columns(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.put("a", some("a", 1.0, 2.0, run_id="first", seed=1))
        store.put("b", some("b", 3.0, run_id="first", seed=2))
        store.put("a", attempt("crashed"))  # one row, after the cell's result
        for filters in ({}, {"value": 2.0}, {"run_id": "run crashed"}, {"seed": [2, None]}, {"run_id": "third"}):
            frame = store.frame(**filters).astype(object)
            assert frame.where(frame.notna(), None).to_dict("records") == store.rows(**filters)


def test_runs(tmp_path: Path) -> None:
    with Store(tmp_path / "s") as store:
        store.add_run("one", {"command": ["run"], "finished": None})
        store.add_run("two", {"blocks": {"highway": {"equation": "y = H(x)·T(x) + x·(1 − T(x))"}}})
        store.add_run("one", {"command": ["run"], "finished": "now"})
        assert list(store.runs()) == ["one", "two"]
        assert store.runs()["one"]["finished"] == "now"


def test_one_writer_and_many_readers(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Store(path) as store:
        store.put("a", some("a", 1.0))
        with Store(path, read_only=True) as reader:
            assert len(reader.rows()) == 1
            store.put("b", some("b", 1.0))
            assert len(reader.rows()) == 2
            with pytest.raises(BadInput, match="readonly"):
                reader.put("c", some("c", 1.0))
        with pytest.raises(BadInput, match=rf"being written by another run \(process {os.getpid()}\): wait for it"):
            Store(path)
    Store(path).close()


def test_writer_in_another_process(tmp_path: Path) -> None:
    with Store(tmp_path / "s"):
        code = f"from highway_bench.results import Store; Store({str(tmp_path / 's')!r})"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    assert done.returncode == 1
    assert "is being written by another run" in done.stderr


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 100)


def foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE songs (title TEXT)")
    db.close()


def truncated(path: Path) -> None:
    with Store(path) as store:
        for number in range(50):
            store.put(str(number), some(str(number), *[1.0] * 20))
    path.write_bytes(path.read_bytes()[:6000])


def newer(path: Path) -> None:
    with_schema(path, str(SCHEMA + 1))


def older_than_any(path: Path) -> None:
    with_schema(path, "0")


def of_no_number(path: Path) -> None:
    with_schema(path, "²")


def with_schema(path: Path, schema: str) -> None:
    with Store(path):
        pass
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (schema,))
    db.close()


def other_columns(path: Path) -> None:
    with Store(path):
        pass
    db = sqlite3.connect(path)
    with db:
        db.execute('ALTER TABLE "rows" DROP COLUMN "dtype"')
    db.close()


def test_a_file_without_tables_becomes_a_store_when_opened_for_writing(tmp_path: Path) -> None:
    """A reader sees this before the process that created the file has created its tables."""
    path = tmp_path / "s.sqlite"
    path.touch()
    with pytest.raises(BadInput, match="nothing is stored there yet"):
        Store(path, read_only=True)
    with Store(path) as store:
        assert store.rows() == []


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (garbage, "file is not a database"),
        (foreign, "is a database, but no highway_bench store"),
        (truncated, "malformed"),
        (newer, f"has schema {SCHEMA + 1}, this version reads up to {SCHEMA}: update highway_bench"),
        (older_than_any, "has schema 0, which never existed; it is damaged"),
        (of_no_number, "does not say which schema it has"),
        (other_columns, f"columns of its rows are not those of schema {SCHEMA}"),
    ],
)
def test_file_that_is_no_store(tmp_path: Path, spoil: Callable[[Path], None], message: str, read_only: bool) -> None:
    path = tmp_path / "s.sqlite"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(BadInput, match=message) as caught:
        Store(path, read_only=read_only).rows()
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    with pytest.raises(BadInput, match=message):  # and the lock was let go
        Store(path).rows()


def test_path_that_cannot_be_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BadInput, match=r"cannot write the store .*: (Not a directory|File exists)"):
        Store(tmp_path / "file" / "s.sqlite")
    with pytest.raises(BadInput, match="it is a folder"):
        Store(tmp_path)
    with pytest.raises(BadInput, match="no store at"):
        Store(tmp_path / "absent.sqlite", read_only=True)
    assert not (tmp_path / "absent.sqlite").exists()


def test_reading_results_takes_no_torch() -> None:
    code = "import sys, highway_bench.results; sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=env).returncode == 0
