"""asv's files are checked when read: one line names the fault of each that asv would not write so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from highway_bench.errors import BadInput
from highway_bench.history.files import MACHINE, read_machine, read_result

COMMIT = "a" * 40


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"results": []}, r"its results is \[\]"),
        ({"results": None}, "its results is None"),
        ({"params": None}, "its params is None"),
        ({"params": {}}, "its params name no machine"),
        ({"result_columns": None}, "its result_columns is None"),
        ({"result_columns": [["result"]]}, "its result_columns are"),
        ({"commit_hash": 1}, "its commit_hash is 1"),
        ({"results": {"b": None}}, "its row b is None"),
        ({"results": {"b": [[1.0], 3]}}, "its row b has the params 3"),
        ({"results": {"b": [[1.0], [[3]]]}}, r"its row b has the params \[\[3\]\]"),
        (
            {"results": {"b": [[1.0], [["x", "y"]]]}},
            r"its row b has the result \[1.0\] for 2 combinations of parameters",
        ),
        ({"results": {"b": [["fast"], [["x"]]]}}, r"its row b has the result \['fast'\]"),
        ({"results": {"b": [[1.0], [["x"]], "1", "today"]}}, "its row b has the started_at 'today'"),
    ],
)
def test_a_file_of_another_shape_is_named_in_one_line(write_point, tmp_path: Path, fields: dict, message: str) -> None:
    path = write_point(tmp_path / "box", COMMIT, {}, **fields)
    with pytest.raises(BadInput, match=message) as error:
        read_result(path)
    assert "\n" not in str(error.value)


def test_what_a_file_lacks_is_named(write_point, tmp_path: Path) -> None:
    path = write_point(tmp_path / "box", COMMIT, {})
    data = json.loads(path.read_text())
    del data["env_name"]
    path.write_text(json.dumps(data))
    with pytest.raises(BadInput, match="it lacks env_name"):
        read_result(path)
    (path.parent / MACHINE).write_text('{"version": 1, "machine": 3}')
    with pytest.raises(BadInput, match="names no machine"):
        read_machine(path.parent, renamed=True)


def test_a_benchmark_that_failed_as_a_whole_failed_everywhere(write_point, tmp_path: Path) -> None:
    """asv writes one null for such a benchmark, for example if its set-up crashes."""
    result = read_result(write_point(tmp_path / "box", COMMIT, {"b.time": (None, 1), "b.loss": ([None, 2.0], 1)}))
    assert result.failures == ["b.time('plain')", "b.time('highway')", "b.loss('plain')"]
    assert result.points.keys() == {"b.loss('highway')"}


def test_a_number_that_no_float_holds_is_no_point(write_point, tmp_path: Path) -> None:
    result = read_result(write_point(tmp_path / "box", COMMIT, {"b.loss": ([10**400, 2.0], 1)}))
    assert result.points.keys() == {"b.loss('highway')"}
