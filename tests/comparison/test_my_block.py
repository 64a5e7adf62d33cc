"""``compare-my-block``: the check first, then the block and its ranks; one line where nothing can be compared."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from highway_bench.cli import app
from highway_bench.cli._output import show
from highway_bench.cli.decide import comparison
from highway_bench.errors import BadInput
from highway_bench.execution.engines import engines
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.studies.comparison.my_block import ReferenceDisagrees, compare_my_block
from tests.comparison.conftest import FormulaEngine

LOSSES = {"pre-norm": 0.1, "my-gate": 0.12}


@pytest.fixture
def compare(my_gate, part, committed, tmp_path):
    """Compares the user's block by an engine; further words are options."""

    def run(engine, file=my_gate, **options):
        given = {"part": part, "rows": committed, "store": tmp_path / "mine.sqlite", "engine": engine} | options
        return compare_my_block(file, **given)

    return run


def test_where_a_block_would_be(compare):
    trains = FormulaEngine(LOSSES)
    compared = compare(trains)
    assert compared.block == "my-gate · depth-aware"
    assert [(one.family, one.depth) for one in compared.checks] == [("dense", 1), ("dense-pair", 1)]
    assert [cell.block for cell in trains.cells[:6]] == ["pre-norm"] * 6
    assert {cell.block for cell in trains.cells[6:]} == {"my-gate"}
    assert compared.missing == ()
    assert trains.plugins == {"my_gate"}
    expected = {"highway": "undecided", "pre-norm": "worse"}
    for one in compared.positions:
        standings = {other.other.partition(" ")[0]: other.standing for other in one.contrasts}
        assert standings == ({"plain": "better"} | expected if one.depth == 1 else expected)  # plain stops at depth 1
        assert (one.successes, one.runs, one.rate, one.ranks) == (FRESH_SEEDS, FRESH_SEEDS, 0.1, (2, 3))
    assert [(one.family, one.depth) for one in compared.positions] == [
        ("dense", 1), ("dense", 2), ("dense-pair", 1), ("dense-pair", 2)]  # fmt: skip
    again = FormulaEngine(LOSSES)
    assert compare(again) == compared
    assert again.cells == []  # all of it is in the store


def test_a_block_stops_where_it_did_not_train(compare):
    compared = compare(FormulaEngine(LOSSES | {"my-gate": 2.3}))
    assert {one.depth for one in compared.positions} == {1}
    assert len(compared.missing) == 2


@pytest.mark.parametrize("loss", [0.13, float("inf")])
def test_nothing_is_compared_where_pre_norm_disagrees(compare, loss):
    trains = FormulaEngine({"pre-norm": loss, "my-gate": 0.1})
    with pytest.raises(ReferenceDisagrees, match="pre-norm in dense at depth 1"):
        compare(trains)
    assert {cell.block for cell in trains.cells} == {"pre-norm"}


def test_no_depth_is_begun_after_the_time(compare):
    compared = compare(FormulaEngine(LOSSES), minutes=1e-9)
    assert (compared.positions, compared.exit_status) == ((), 3)
    assert "no time" in compared.missing[0]


def test_bad_input_is_one_line_before_anything_is_trained(compare, tmp_path, monkeypatch):
    nothing, empty = tmp_path / "nothing_in_it.py", tmp_path / "empty"
    nothing.write_text("")
    empty.mkdir()
    trains = FormulaEngine(LOSSES)
    for options, message in (
        ({"minutes": 0}, "minutes"),
        ({"families": ["conv"]}, "conv"),
        ({"part": "vison"}, "vison"),
        ({"part": "costs"}, "costs"),
        ({"part": "seconds"}, "seconds"),
        ({"block": "highway"}, "block"),
        ({"rows": empty}, "empty"),
        ({"file": str(nothing)}, "no block"),
    ):
        with pytest.raises(BadInput, match=message):
            compare(trains, **options)
    monkeypatch.setattr("highway_bench.studies.comparison.finals.PROTOCOL", 99)
    with pytest.raises(BadInput, match="part 'tiny'"):
        compare(trains)
    assert trains.cells == []
    assert not (tmp_path / "mine.sqlite").exists()


def test_failed_trainings_are_named(compare):
    with pytest.raises(ReferenceDisagrees, match="out of ideas"):
        compare(FormulaEngine(LOSSES, fails="pre-norm"))
    compared = compare(FormulaEngine(LOSSES, fails="my-gate"))
    assert (compared.positions, compared.exit_status) == ((), 1)
    assert "my-gate" in compared.missing[-1]


def test_the_command(my_gate, part, committed, tmp_path):
    options = {"part": part, "rows": committed, "store": tmp_path / "m.sqlite", "engine": "formula", "family": "dense"}
    words = ["compare-my-block", my_gate, *(f"--{name}={value}" for name, value in options.items())]
    engines.register("formula", lambda workers: FormulaEngine(LOSSES), module=__name__)
    try:
        shown, printed = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--json"]))
    finally:
        engines.unregister("formula")
    assert shown.exit_code == 0, shown.output
    assert "2 to 3 of 4" in shown.stdout
    data = json.loads(printed.stdout)
    assert [one["first_rank"] for one in data["positions"]] == [2, 2]
    assert data["checks"][0]["ratio"]["low"] <= 1 <= data["checks"][0]["ratio"]["high"]


def test_a_block_that_diverges_has_no_loss(compare, capsys):
    compared = compare(FormulaEngine(LOSSES | {"my-gate": float("inf")}), families=("dense",))
    show({}, comparison(compared, Path("mine.sqlite")), as_json=False)
    shown = capsys.readouterr().out
    assert "a seed diverged" in shown
    assert "nan" not in shown
