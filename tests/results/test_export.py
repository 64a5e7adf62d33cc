"""Stores are exported to other programs and merged from several machines, and nothing is lost."""

import csv
import json

import pytest

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.results import COLUMNS, MergeCounts, Store, export, import_rows
from tests.results.conftest import EARLY, LATE, filled, some

ODD = {"recipe": '{"rate":0.1}', "samples": "[1.0,2.0]", "message": "a, b\n“c”"}


def test_csv(tmp_path):
    with Store(filled(tmp_path / "s", some("a", 0.1 + 0.2, **ODD))) as store:
        assert export(store, tmp_path / "new" / "out.csv") == 1
    with (tmp_path / "new" / "out.csv").open(encoding="utf-8", newline="") as lines:
        (read,) = csv.DictReader(lines)
    assert list(read) == list(COLUMNS)
    assert (float(read["value"]), read["low"]) == (0.1 + 0.2, "")
    assert {name: read[name] for name in ODD} == ODD


def test_jsonl(tmp_path):
    with Store(filled(tmp_path / "s", some("a", 1.0, **ODD), some("b", 2.0))) as store:
        assert export(store, tmp_path / "out.jsonl") == 2
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [r["digest"] for r in read] == ["a", "b"]
    assert (read[0]["recipe"], read[0]["samples"], read[0]["low"]) == ({"rate": 0.1}, [1.0, 2.0], None)


def test_export_elsewhere(tmp_path):
    with Store(tmp_path / "s") as store:
        with pytest.raises(BadInput, match=r"\.csv, \.jsonl or \.parquet"):
            export(store, tmp_path / "out.xlsx")
        (tmp_path / "out.csv").mkdir()
        with pytest.raises(NothingMeasured, match="has no rows"):
            export(store, tmp_path / "out.csv")
    path = filled(tmp_path / "s", some("a", 1.0))
    with Store(path) as store, pytest.raises(BadInput, match="Is a directory"):
        export(store, tmp_path / "out.csv")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_an_export_that_fails_leaves_the_one_before(tmp_path, monkeypatch, suffix):
    target = tmp_path / f"rows{suffix}"
    with Store(filled(tmp_path / "s", some("a", 1.0))) as store:
        export(store, target)
        before = target.read_bytes()
        monkeypatch.setattr(store, "rows", lambda: [{"metric": "time"}, {"unknown": object()}])
        with pytest.raises((ValueError, TypeError, KeyError)):
            export(store, target)
    assert target.read_bytes() == before


def test_an_import_keeps_the_later_of_two_and_everything_else(tmp_path):
    def cell(digest, value, time, run):
        return some(digest, value, time_utc=time, run_id=run)

    into = filled(tmp_path / "into", cell("both", 1.0, EARLY, "mine"), cell("mine", 2.0, LATE, "mine"))
    first = filled(tmp_path / "first", cell("both", 3.0, LATE, "theirs"), cell("mine", 4.0, EARLY, "theirs"))
    second = filled(tmp_path / "second", cell("new", 5.0, EARLY, "third"))
    taken = import_rows(into, first, second)
    assert taken == {first: MergeCounts(replaced=1, older=1), second: MergeCounts(added=1)}
    with Store(into, read_only=True) as store:
        assert {r["digest"]: r["value"] for r in store.rows()} == {"both": 3.0, "mine": 2.0, "new": 5.0}
        assert set(store.runs()) == {"mine", "theirs", "third"}
    with Store(first, read_only=True) as store:
        assert len(store.rows()) == 2
    assert import_rows(into, first, second) == {first: MergeCounts(same=1, older=1), second: MergeCounts(same=1)}
    assert import_rows(tmp_path / "new", second) == {second: MergeCounts(added=1)}


def test_an_import_checks_all_before_it_writes(tmp_path):
    good = filled(tmp_path / "good", some("a", 1.0))
    bad = tmp_path / "bad"
    bad.write_text("no database " * 20)
    for others, message in [
        ((good, bad), "not a database"),
        ((good, tmp_path / "absent"), "no store at"),
        ((), "nothing to import"),
        ((tmp_path / "into",), "into itself"),
    ]:
        with pytest.raises(BadInput, match=message):
            import_rows(tmp_path / "into", *others)
        assert not (tmp_path / "into").exists()
