"""Proofs of the gate, and of ratios beside a load: invented lines have the verdicts and the table they must have."""

import json
import math
import random
from collections import Counter

import pandas as pd
import pytest

from benches.proofs import gate as gate_proof
from benches.proofs import load as load_proof
from highway_bench.history.verdicts import GateVerdict

NAMES = ("plain dense 10", "highway dense 10")


def pool(kind, lines, ratio, sd):
    source = random.Random(0)

    def value():
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
def test_a_pools_judgements(ratio, sd, expected):
    verdicts = Counter(gate_proof.judgements(pool("same", 48, ratio, sd)))
    assert expected in verdicts
    assert (GateVerdict.REGRESSION in verdicts) == (expected is GateVerdict.REGRESSION)
    assert 2 * 48 // 24 <= verdicts.total() <= 2 * 48 // 4  # each pair of processes is used once


def test_whole_runs_on_the_same_code_and_on_code_that_drifts():
    lines = pool("point", 3 * 14, 1.5, 0.005) + pool("same", 200, 1.0, 0.01)
    same = gate_proof.complete_runs(lines)["idle"]
    assert len(same) == 14 - 5
    assert not any(GateVerdict.REGRESSION in verdicts.values() for verdicts in same)
    drifting = gate_proof.complete_runs(lines, 1.01)["idle"]
    assert len(drifting) == 14 - 10
    assert all(GateVerdict.REGRESSION in verdicts.values() for verdicts in drifting)


def test_a_run_belongs_to_the_load_of_its_newest_point():
    busy = [{**line, "load": "2"} for line in pool("point", 3 * 2, 1.5, 0.005)]
    lines = pool("point", 3 * 6, 1.5, 0.005) + busy
    assert [load for load, _ in gate_proof.whole_runs(lines)] == ["idle", "2", "2"]


def test_a_point_is_judged_against_those_since_the_same_start_of_the_machine():
    slower = [{**line, "boot": "2"} for line in pool("point", 3 * 6, 3.0, 0.005)]
    runs = [verdicts for _, verdicts in gate_proof.whole_runs(pool("point", 3 * 6, 1.5, 0.005) + slower)]
    assert len(runs) == 2
    assert not any(runs)


def test_a_run_without_enough_pairs_is_left_out():
    lines = pool("point", 3 * 10, 1.5, 0.05)
    runs = [verdicts for _, verdicts in gate_proof.whole_runs(lines)]
    assert any(None in verdicts.values() for verdicts in runs)
    assert sum(map(len, gate_proof.complete_runs(lines).values())) == sum(verdicts == {} for verdicts in runs)


def line(load, **ratios):
    about = {"load": load, "at": "2026-11-24T10:00:00+00:00", "commit": "0123456789", "machine": "m", "waited": 0.4}
    about |= {"shift_by_waiting": 0.1}
    return json.dumps(about | {"ratios": ratios}) + "\n"


def test_a_run_is_compared_with_the_idle_run_before_it(tmp_path):
    file = tmp_path / "lines.jsonl"
    idle = line("idle", a=[1.5, 1.45, 1.55], b=[2.0, 1.95, 2.05], c=[1.2, 1.1, 1.3])
    near = line("2", a=[1.53, 1.47, 1.6], b=[2.2, 2.1, 2.3], c=[1.0, 0.7, 1.4])
    file.write_text(near + idle + near + line("2", a=[math.nan] * 3, b=[2.0, 1.9, 2.1]), encoding="utf-8")
    head, _, *rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in load_proof.judge(file)]
    assert [len(row) for row in rows] == [len(head)] * 4
    alone, reference, loaded, gap = (row[5:] for row in rows)
    assert alone == ["4.0 %", "1 of 3", "no idle run before it", "", ""]
    assert reference == ["4.0 %", "0 of 3", "", "", ""]
    assert loaded == ["4.0 %", "1 of 3", "1 of 2", "10.0 %", "6.0 %"]
    assert gap == ["4.0 %", "1 of 2", "1 of 1", "0.0 %", "0.0 %"]


def test_the_ratios_of_a_run_are_those_of_its_cells():
    cell = {"family": "dense", "depth": 4, "seq_len": math.nan, "threads": 1, "ratio_low": 1.4, "ratio_high": 1.6}
    rows = pd.DataFrame([cell | {"block": "plain", "ratio": 1.0}, cell | {"block": "highway", "ratio": 1.5}])
    assert load_proof.ratios_of(rows) == {"highway dense 4 nan 1": (1.5, 1.4, 1.6)}
