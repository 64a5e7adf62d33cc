"""The judgements that are drawn from pools of processes: invented pools have the verdicts that they must have."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benches.proofs import gate as gate_proof
from benches.proofs import gate_judgements
from highway_bench.history.verdicts import GateVerdict

NAMES = ("plain dense 10", "highway dense 10")


def pool(kind: str, lines: int, ratio: float, sd: float) -> list[dict[str, Any]]:
    source = random.Random(0)

    def value() -> Any:
        drawn = ratio * source.gauss(1, sd)
        return drawn if kind == "point" else [drawn, 0.1]

    return [
        {"kind": kind, "load": "idle", "boot": "1", "values": {name: value() for name in NAMES}} for _ in range(lines)
    ]


@pytest.mark.parametrize(
    ("ratio", "sd", "expected"),
    [
        (1.0, 0.002, GateVerdict.UNCONFIRMED),
        (1.05, 0.01, GateVerdict.REGRESSION),
        (1.0, 0.2, GateVerdict.UNDECIDED),
    ],
)
def test_a_pools_judgements(ratio: float, sd: float, expected: GateVerdict) -> None:
    verdicts = Counter(gate_judgements.judgements(pool("same", 48, ratio, sd)))
    assert expected in verdicts
    assert (GateVerdict.REGRESSION in verdicts) == (expected is GateVerdict.REGRESSION)
    assert 2 * 48 // 24 <= verdicts.total() <= 2 * 48 // 4  # each pair of processes is used once


def test_too_few_pairs_give_no_judgement() -> None:
    assert list(gate_judgements.judgements(pool("same", 3, 1.0, 0.01))) == []


def test_whole_runs_on_the_same_code_and_on_code_that_drifts() -> None:
    lines = pool("point", 3 * 14, 1.5, 0.005) + pool("same", 200, 1.0, 0.01)
    same = gate_judgements.complete_runs(lines)["idle"]
    assert len(same) == 14 - 5
    assert not any(GateVerdict.REGRESSION in verdicts.values() for verdicts in same)
    drifting = gate_judgements.complete_runs(lines, 1.01)["idle"]
    assert len(drifting) == 14 - 10
    assert all(GateVerdict.REGRESSION in verdicts.values() for verdicts in drifting)


def test_a_run_belongs_to_the_load_of_its_newest_point() -> None:
    busy = [{**line, "load": "2"} for line in pool("point", 3 * 2, 1.5, 0.005)]
    lines = pool("point", 3 * 6, 1.5, 0.005) + busy
    assert [load for load, _ in gate_judgements.whole_runs(lines)] == ["idle", "2", "2"]


def test_a_point_is_judged_against_those_since_the_same_start_of_the_machine() -> None:
    slower = [{**line, "boot": "2"} for line in pool("point", 3 * 6, 3.0, 0.005)]
    runs = [verdicts for _, verdicts in gate_judgements.whole_runs(pool("point", 3 * 6, 1.5, 0.005) + slower)]
    assert len(runs) == 2
    assert not any(runs)


def test_a_run_without_enough_pairs_is_left_out() -> None:
    lines = pool("point", 3 * 10, 1.5, 0.05)
    runs = [verdicts for _, verdicts in gate_judgements.whole_runs(lines)]
    assert any(None in verdicts.values() for verdicts in runs)
    assert sum(map(len, gate_judgements.complete_runs(lines).values())) == sum(verdicts == {} for verdicts in runs)


def test_the_command_without_a_pool_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="collect first"):
        gate_proof.judge(tmp_path / "none.jsonl")
