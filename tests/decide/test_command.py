"""``highway-bench decide``: its exit status."""

import pytest
from typer.testing import CliRunner

from highway_bench.cli import app
from highway_bench.execution.engines import engines
from highway_bench.studies.decide import protocol
from tests.decide.conftest import TINY
from tests.formula_engine import FormulaEngine


@pytest.mark.parametrize("fails", ["", "plain"])
def test_a_failed_training_is_named_and_gives_status_1(fails, tmp_path, monkeypatch):
    monkeypatch.setitem(protocol.PARTS, "tiny", lambda: TINY)
    engines.register("formula", lambda workers: FormulaEngine(fails=fails), module=__name__)
    try:
        words = ["decide", "--part", "tiny", "--engine", "formula", "--store", str(tmp_path / "s.sqlite")]
        done = CliRunner().invoke(app, words)
    finally:
        engines.unregister("formula")
    assert done.exit_code == (1 if fails else 0), done.output
    assert " trainings of 1 candidates\n" in done.stdout
    assert (" cells failed, the first: " in done.stderr) == bool(fails)
