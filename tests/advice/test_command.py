"""``highway-bench advise``: bad input in one line with exit status 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from highway_bench.cli import app


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Call the command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, ["advise", *map(str, words)], prog_name="highway-bench")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dense", "--depth", "2", "--minutes", "0"), "minutes"),
        (("dense", "--depth", "0"), "depth"),
        (("dens", "--depth", "2"), "did you mean dense"),
        (("no_layers:make", "--depth", "2"), "no_layers"),
        (("dense", "--depth", "2", "--data", "none.txt"), "none.txt"),
        (("dense", "--depth", "2", "--block", "higway"), "did you mean highway"),
        (("dense", "--depth", "1000000000"), "does not fit memory"),
        (("dense", "--depth", "2", "--loss", "no_module:loss"), "no_module"),
    ],
)
def test_one_line_and_status_2(call: Callable[..., Any], words: tuple[str, ...], says: str, tmp_path: Path) -> None:
    done = call(*words)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("highway-bench: ")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert not list(tmp_path.glob("**/store.sqlite"))
