"""Working and recorded results of one point: the newer counts, nothing is lost, and withdrawn points stay away."""

from __future__ import annotations

import json
import math
import sys
import threading
from pathlib import Path

import pytest

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history import Paths
from highway_bench.history.files import MACHINE, read_result
from highway_bench.history.importing import import_results
from highway_bench.history.merge import merge_recorded
from highway_bench.history.record import record
from highway_bench.history.working_folder import exclusive

NAN = math.nan
BOX = "cpu-box"


@pytest.fixture
def paths(throwaway) -> Paths:
    throwaway.commit("start")
    return throwaway.paths


@pytest.fixture
def head(paths: Paths, throwaway) -> str:
    return throwaway.commits[-1]


def values(path: Path) -> dict[str, float]:
    return {series: point.value for series, point in read_result(path).points.items()}


def test_the_newer_row_counts_and_no_value_is_lost(write_point, paths: Paths, head: str) -> None:
    """A newer quick point was recorded elsewhere; the full one here was not."""
    there = write_point(
        paths.results / BOX, head, {"b.step": ([1.0, 2.0], 10), "b.loss": ([3.0, NAN], 30), "b.deep": ([4.0, 4.0], 10)}
    )
    write_point(
        paths.recorded / BOX, head, {"b.step": ([5.0, NAN], 20), "b.loss": ([6.0, 7.0], 20), "b.new": ([8.0, NAN], 20)}
    )
    assert merge_recorded(paths) == []
    merged = {
        "b.step('plain')": 5.0,
        "b.step('highway')": 2.0,
        "b.loss('plain')": 3.0,
        "b.loss('highway')": 7.0,
        "b.deep('plain')": 4.0,
        "b.deep('highway')": 4.0,
        "b.new('plain')": 8.0,
    }
    assert values(there) == merged
    before = there.read_bytes()
    merge_recorded(paths)
    assert there.read_bytes() == before
    assert record(paths, BOX, replace=True).replaced == [head[:8]]
    assert values(paths.recorded / BOX / there.name) == merged


def test_a_newer_version_of_a_benchmark_takes_no_value_of_an_older(write_point, paths: Paths, head: str) -> None:
    there = write_point(paths.results / BOX, head, {}, results={"b.step": [[1.0, NAN], [["'x'", "'y'"]], "2", 20]})
    write_point(paths.recorded / BOX, head, {"b.step": ([5.0, 5.0], 10)})
    merge_recorded(paths)
    assert values(there) == {"b.step('x')": 1.0}


def test_a_block_of_one_file_alone_remains(write_point, paths: Paths, head: str) -> None:
    there = write_point(paths.results / BOX, head, {}, results={"b.step": [[1.0, 2.0], [["'new'", "'plain'"]], "1", 9]})
    write_point(paths.recorded / BOX, head, {"b.step": ([5.0, 6.0], 1)})
    merge_recorded(paths)
    assert values(there) == {"b.step('new')": 1.0, "b.step('plain')": 2.0, "b.step('highway')": 6.0}


def test_a_newer_failure_is_shown_and_takes_no_recorded_value(write_point, paths: Paths, head: str) -> None:
    stored = write_point(paths.recorded / BOX, head, {"b.step": ([1.0, 2.0], 10)})
    there = write_point(paths.results / BOX, head, {"b.step": ([5.0, None], 20)})
    merge_recorded(paths)
    assert read_result(there).failures == ["b.step('highway')"]
    record(paths, BOX, replace=True)
    assert values(stored) == {"b.step('plain')": 5.0, "b.step('highway')": 2.0}


def test_a_withdrawn_point_does_not_return(write_point, paths: Paths, head: str, tmp_path: Path) -> None:
    there = write_point(paths.results / BOX, head, {"b.step": ([1.0, 1.0], 20)})
    assert record(paths, BOX).added == [head[:8]]
    stored = paths.recorded / BOX / there.name
    stored.unlink()
    with pytest.raises(NothingMeasured, match=r"moved to .*; there are no points"):
        record(paths, BOX)
    assert (paths.withdrawn / BOX / there.name).is_file()
    assert not stored.exists()
    import_results(paths, write_point(tmp_path / BOX, head, {"b.step": ([2.0, 2.0], 10)}).parent)
    assert values(there) == values(stored) == {"b.step('plain')": 2.0, "b.step('highway')": 2.0}


def test_what_is_imported_counts_over_what_was_measured_here(
    write_point, paths: Paths, head: str, tmp_path: Path
) -> None:
    there = write_point(paths.results / BOX, head, {"b.step": ([1.0, 1.0], 20), "b.loss": ([3.0, 3.0], 20)})
    import_results(paths, write_point(tmp_path / BOX, head, {"b.step": ([2.0, 2.0], 10)}).parent)
    assert values(there) == {
        "b.step('plain')": 2.0,
        "b.step('highway')": 2.0,
        "b.loss('plain')": 3.0,
        "b.loss('highway')": 3.0,
    }


@pytest.mark.parametrize("twin", [True, False])
def test_working_files_cut_short_are_repaired(write_point, paths: Paths, head: str, twin: bool) -> None:
    there = write_point(paths.results / BOX, head, {"b.step": ([1.0, 1.0], 20)})
    lost = write_point(paths.results / BOX, "b" * 40, {})
    entry = there.parent / MACHINE
    whole = json.loads(entry.read_text())
    if twin:
        record(paths, BOX)
        there.write_text("{")
    entry.write_text('{"machine"')
    lost.write_text("{")
    lines = merge_recorded(paths)
    assert all("cut short" in line for line in lines)
    assert len(lines) == 2 + twin
    assert json.loads(entry.read_text()) == whole
    assert values(there) == {"b.step('plain')": 1.0, "b.step('highway')": 1.0}
    assert not lost.exists()


def test_nothing_is_dropped_where_a_file_cannot_be_read(write_point, paths: Paths, head: str) -> None:
    short = write_point(paths.results / BOX, "b" * 40, {})
    short.write_text("{")
    newer = write_point(paths.results / BOX, head, {}, version=99)
    with pytest.raises(BadInput, match="newer than"):
        merge_recorded(paths)
    assert short.is_file()
    assert newer.is_file()


def test_a_machine_to_record_is_no_path(write_point, paths: Paths, head: str) -> None:
    write_point(paths.uncommitted / BOX, head, {"b.step": ([1.0, 1.0], 20)})
    with pytest.raises(BadInput, match="machine name"):
        record(paths, f"../uncommitted/{BOX}")


def test_a_point_that_says_other_hardware_would_split_its_line(
    write_point, paths: Paths, head: str, tmp_path: Path
) -> None:
    for folder in (paths.results / BOX, tmp_path / BOX):
        path = write_point(folder, head, {"b.step": ([1.0, 1.0], 20)})
        data = json.loads(path.read_text())
        path.write_text(json.dumps(data | {"params": data["params"] | {"ram": "1 GiB"}}))
    (line,) = record(paths, BOX).left_out
    assert "ram='1 GiB', there" in line
    with pytest.raises(BadInput, match="ram='1 GiB', there"):
        import_results(paths, tmp_path / BOX)


@pytest.mark.parametrize(
    ("commit", "given", "message"),
    [
        (None, "HEAD~1", "is of commit .* omit --commit"),
        ("main", None, "'main', which is no hash"),
        ("HEAD~1", "HEAD~1", "'HEAD~1', which is no hash"),
        ("f" * 40, None, "no commit 'ffff"),
    ],
)
def test_an_import_knows_its_commit(
    write_point, throwaway, tmp_path: Path, commit: str | None, given: str | None, message: str
) -> None:
    for _ in range(2):
        throwaway.commit("one more")
    write_point(tmp_path / BOX, commit or throwaway.commits[-1], {"b.step": ([1.0, 1.0], 20)})
    with pytest.raises(BadInput, match=message):
        import_results(throwaway.paths, tmp_path / BOX, given)
    assert not throwaway.paths.recorded.exists()


def test_one_command_works_in_the_folder_at_a_time(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    waits, order = threading.Event(), []
    monkeypatch.setattr(sys, "stderr", type("Said", (), {"write": lambda self, line: waits.set()})())
    note = exclusive(lambda paths, who: order.append(who))
    other = threading.Thread(target=note, args=(paths, "other"))

    @exclusive
    def first(paths: Paths) -> None:
        other.start()
        assert waits.wait(60)
        note(paths, "first")  # what it calls need not wait

    first(paths)
    other.join(20)
    assert order == ["first", "other"]
