"""``compare-my-block``: the check first, then the block and its ranks; one line where nothing can be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from highway_bench.cli import app
from highway_bench.cli._output import show
from highway_bench.cli.decide import comparison
from highway_bench.errors import BadInput
from highway_bench.execution.engines import engines
from highway_bench.plan.settings import FRESH_SEEDS
from highway_bench.studies.comparison.my_block import ReferenceDisagrees, compare_my_block

Engine = Callable[..., Any]
LOSSES = {"pre-norm": 0.1, "my-gate": 0.12}


def compare(file: str, committed: Path, folder: Path, engine: Any, **options: Any) -> Any:
    given = {"part": "tiny", "rows": committed, "store": folder / "mine.sqlite", "engine": engine} | options
    return compare_my_block(file, **given)


def test_where_a_block_would_be(my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine) -> None:
    trains = engine(LOSSES)
    compared = compare(my_gate, committed, tmp_path, trains)
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
    again = engine(LOSSES)
    assert compare(my_gate, committed, tmp_path, again) == compared
    assert again.cells == []  # all of it is in the store


def test_plain_stops_where_it_did_not_train(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine
) -> None:
    compared = compare(my_gate, committed, tmp_path, engine({"pre-norm": 0.1, "my-gate": 2.3}))
    assert {one.depth for one in compared.positions} == {1}
    assert len(compared.missing) == 2


@pytest.mark.parametrize("loss", [0.13, float("inf")])
def test_nothing_is_compared_where_pre_norm_disagrees(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine, loss: float
) -> None:
    trains = engine({"pre-norm": loss, "my-gate": 0.1})
    with pytest.raises(ReferenceDisagrees, match="pre-norm in dense at depth 1"):
        compare(my_gate, committed, tmp_path, trains)
    assert {cell.block for cell in trains.cells} == {"pre-norm"}


def test_no_depth_is_begun_after_the_time(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine
) -> None:
    compared = compare(my_gate, committed, tmp_path, engine(LOSSES), minutes=1e-9)
    assert (compared.positions, compared.exit_status) == ((), 3)
    assert "no time" in compared.missing[0]


def test_bad_input_is_one_line_before_anything_is_trained(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nothing_in_it.py").write_text("")
    (tmp_path / "empty").mkdir()
    trains = engine(LOSSES)
    for options, message in (
        ({"minutes": 0}, "minutes"),
        ({"families": ["conv"]}, "conv"),
        ({"part": "vison"}, "vison"),
        ({"part": "costs"}, "costs"),
        ({"part": "seconds"}, "seconds"),
        ({"block": "highway"}, "block"),
        ({"rows": tmp_path / "empty"}, "empty"),
    ):
        with pytest.raises(BadInput, match=message):
            compare(my_gate, committed, tmp_path, trains, **options)
    with pytest.raises(BadInput, match="registers no block"):
        compare(str(tmp_path / "nothing_in_it.py"), committed, tmp_path, trains)
    monkeypatch.setattr("highway_bench.studies.comparison.finals.PROTOCOL", 99)
    with pytest.raises(BadInput, match="has no rows of pre-norm of part 'tiny'"):
        compare(my_gate, committed, tmp_path, trains)
    assert trains.cells == []
    assert not (tmp_path / "mine.sqlite").exists()


@pytest.mark.parametrize("fails", ["pre-norm", "my-gate"])
def test_failed_trainings_are_named(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine, fails: str
) -> None:
    trains = engine(LOSSES, fails=fails)
    if fails == "pre-norm":
        with pytest.raises(ReferenceDisagrees, match="out of ideas"):
            compare(my_gate, committed, tmp_path, trains)
    else:
        compared = compare(my_gate, committed, tmp_path, trains)
        assert compared.positions == ()
        assert "my-gate" in compared.missing[-1]
        assert compared.exit_status == 1


def test_the_command(my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine) -> None:
    words = [
        "compare-my-block",
        my_gate,
        "--part",
        part,
        "--rows",
        str(committed),
        "--store",
        str(tmp_path / "m.sqlite"),
    ]
    engines.register("formula", lambda workers: engine(LOSSES), module=__name__)
    try:
        shown = CliRunner().invoke(app, [*words, "--engine", "formula", "--family", "dense"])
        printed = CliRunner().invoke(app, [*words, "--engine", "formula", "--family", "dense", "--json"])
    finally:
        engines.unregister("formula")
    assert shown.exit_code == 0, shown.output
    assert "2 to 3 of 4" in shown.stdout
    data = json.loads(printed.stdout)
    assert [one["first_rank"] for one in data["positions"]] == [2, 2]
    assert data["checks"][0]["ratio"]["low"] <= 1 <= data["checks"][0]["ratio"]["high"]


def test_a_block_that_diverges_has_no_loss(
    my_gate: str, part: str, committed: Path, tmp_path: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = compare(my_gate, committed, tmp_path, engine(LOSSES | {"my-gate": float("inf")}), families=("dense",))
    show({}, comparison(compared, tmp_path / "mine.sqlite"), as_json=False)
    shown = capsys.readouterr().out
    assert "a seed diverged" in shown
    assert "nan" not in shown
