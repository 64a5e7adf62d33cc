"""The judgements that are drawn from pools of processes: invented pools have the verdicts that they must have."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from highway_bench.history.gate import GateVerdict

SCRIPT = Path(__file__).resolve().parents[2] / "benches/gate_proof.py"
NAMES = ("plain dense 10", "highway dense 10")


@pytest.fixture(scope="module")
def proof() -> Any:
    spec = importlib.util.spec_from_file_location("gate_proof", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pool(kind: str, lines: int, ratio: float, sd: float) -> list[dict[str, Any]]:
    source = random.Random(0)

    def value() -> Any:
        drawn = ratio * source.gauss(1, sd)
        return drawn if kind == "point" else [drawn, 0.1]

    return [{"kind": kind, "beside": "idle", "values": {name: value() for name in NAMES}} for _ in range(lines)]


@pytest.mark.parametrize(
    ("ratio", "sd", "expected"),
    [
        (1.0, 0.01, GateVerdict.UNCONFIRMED),
        (1.05, 0.01, GateVerdict.REGRESSION),
        (1.0, 0.2, GateVerdict.UNDECIDED),
    ],
)
def test_a_pools_judgements(proof, ratio: float, sd: float, expected: GateVerdict) -> None:
    verdicts = Counter(proof.judgements(pool("same", 48, ratio, sd)))
    assert expected in verdicts
    assert (GateVerdict.REGRESSION in verdicts) == (expected is GateVerdict.REGRESSION)
    assert verdicts.total() == 2 * 48 // (24 if sd > 0.1 else 8)  # each pair of processes is used once


def test_too_few_pairs_give_no_judgement(proof) -> None:
    assert list(proof.judgements(pool("same", 7, 1.0, 0.01))) == []


def test_whole_runs_on_the_same_code_and_on_code_that_drifts(proof) -> None:
    lines = pool("point", 3 * 14, 1.5, 0.005) + pool("same", 200, 1.0, 0.01)
    same = proof.complete_runs(lines)
    assert len(same) == 14 - 5
    assert not any(GateVerdict.REGRESSION in verdicts.values() for verdicts in same)
    drifting = proof.complete_runs(lines, 1.01)
    assert len(drifting) == 14 - 10
    assert all(GateVerdict.REGRESSION in verdicts.values() for verdicts in drifting)


def test_a_run_without_enough_pairs_is_left_out(proof) -> None:
    lines = pool("point", 3 * 10, 1.5, 0.05)
    assert any(None in verdicts.values() for verdicts in proof.whole_runs(lines))
    assert all(verdicts == {} for verdicts in proof.complete_runs(lines))


def test_the_command_without_a_pool_is_one_line(proof, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="collect first"):
        proof.judge(tmp_path / "none.jsonl")
