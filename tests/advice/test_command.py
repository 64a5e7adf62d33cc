"""``highway-bench advise``: what it prints, and bad input in one line with exit status 2."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from highway_bench.advice.run import advise as real_advise
from highway_bench.cli import app

TINY = ("--depth", "2", "--width", "8", "--batch-size", "16", "--data", "digits", "--block", "plain")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: Callable[..., Any]) -> Callable[..., Any]:
    """Call the command in an empty folder; it measures in this process."""
    monkeypatch.chdir(tmp_path)

    def here(layer: str, **words: Any) -> Any:
        return real_advise(layer, **words | {"engine": inline(), "workers": 1, "progress": False})

    monkeypatch.setattr("highway_bench.advice.run.advise", here)
    return lambda *words: CliRunner().invoke(app, ["advise", *map(str, words)], prog_name="highway-bench")


def test_the_answer_comes_first(call: Callable[..., Any], brief: None) -> None:
    done = call("dense", *TINY, "--minutes", "2")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].endswith(".")
    assert [line.partition("?")[0] for line in lines[1:4]] == ["Does it train", "What does it cost", "How good is it"]
    assert "page: reports/advice/dense-2-" in done.stdout
    printed = json.loads(call("dense", *TINY, "--minutes", "2", "--json").stdout)
    assert printed["answer"] == lines[0]
    assert printed["schema"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dense", "--depth", "2", "--minutes", "0"), "minutes must be above 0, not 0"),
        (("dense", "--depth", "0"), "depth must be at least 1, not 0"),
        (("dens", "--depth", "2"), "unknown family 'dens'; did you mean dense"),
        (("no_layers:make", "--depth", "2"), "cannot import 'no_layers'"),
        (("dense", "--depth", "2", "--data", "none.txt"), "there is no such file"),
        (("dense", "--depth", "2", "--data", "no_data:batches"), "No module named 'no_data'"),
        (("dense", "--depth", "2", "--block", "higway"), "did you mean highway"),
        (("dense", "--depth", "1000000000"), "does not fit memory"),
        (("dense", "--depth", "2", "--loss", "no_module:loss"), "No module named 'no_module'"),
    ],
)
def test_one_line_and_status_2(call: Callable[..., Any], words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = call(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("highway-bench: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not list(tmp_path.glob("**/store.sqlite"))
