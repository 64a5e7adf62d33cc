"""Ratios next to a load against those of an idle machine: invented lines have the table that they must have."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from benches.proofs import gate as gate_proof
from benches.proofs import load as load_proof


def line(load: str, **ratios: Any) -> str:
    about = {"load": load, "at": "2026-11-24T10:00:00+00:00", "commit": "0123456789", "machine": "m", "waited": 0.4}
    about |= {"shift_by_waiting": 0.1}
    return json.dumps(about | {"ratios": ratios}) + "\n"


def test_a_run_is_compared_with_the_idle_run_before_it(tmp_path: Path) -> None:
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


def test_the_ratios_of_a_run_are_those_of_its_cells() -> None:
    cell = {"family": "dense", "depth": 4, "seq_len": math.nan, "threads": 1, "ratio_low": 1.4, "ratio_high": 1.6}
    rows = pd.DataFrame([cell | {"block": "plain", "ratio": 1.0}, cell | {"block": "highway", "ratio": 1.5}])
    assert load_proof.ratios_of(rows) == {"highway dense 4 nan 1": (1.5, 1.4, 1.6)}


@pytest.mark.parametrize("script", [load_proof, gate_proof], ids=lambda script: script.__name__)
def test_what_the_arguments_name_is_collected(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(script, "collect", lambda *given: seen.append(given))
    monkeypatch.setattr(sys, "argv", ["proof", "collect", "--load", "2", "--file", str(tmp_path / "lines.jsonl")])
    script.main()
    assert [(one[0], one[-1]) for one in seen] == [("2", tmp_path / "lines.jsonl")]


def test_the_command_without_a_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="collect first"):
        load_proof.judge(tmp_path / "none.jsonl")
