"""The proof of advices: which bests are known, what a line says, and that lines are not made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from highway_bench.advice.connections import Connection
from highway_bench.advice.finals import QualityVerdict
from highway_bench.decide.vision import vision

PRE, GATE = Connection("pre-norm", "published"), Connection("highway", "published")


@pytest.fixture
def proof(script: Callable[[str], Any]) -> Any:
    return script("advice_proof")


def advice(*use: Connection) -> Any:
    quality = SimpleNamespace(seeds=5)
    return SimpleNamespace(
        use=use, verdict=QualityVerdict.TAKE, quality=quality, ladder=(1, 3, 9), about={"minutes": 5}
    )


def runs(mean: float, seeds: int = 5) -> dict[int, float | None]:
    return {seed: mean * (1 + 0.01 * (-1) ** seed) for seed in range(seeds)}


def test_a_best_is_known_where_it_leads_alone(proof: Any) -> None:
    losses = {
        ("conv", 5): {PRE: runs(1.0), GATE: runs(0.5)},
        ("conv", 10): {PRE: runs(1.0), GATE: dict.fromkeys(range(5), 1.0)},
        ("conv", 20): {PRE: runs(1.0), GATE: runs(0.5, seeds=3)},
    }
    assert list(proof.bests(losses)) == [proof.Known("conv", 5, GATE)]


def test_lines_say_whether_the_best_is_held_and_copies_are_told_apart(proof: Any) -> None:
    known = proof.Task("known", 0, proof.Known("conv", 5, GATE))
    assert proof.line_of(known, lambda *_, **__: advice(PRE, GATE))["held"]
    assert not proof.line_of(known, lambda *_, **__: advice(PRE))["held"]
    copies = proof.Task("copies", 0)
    assert not proof.line_of(copies, lambda *_, **__: advice(PRE, proof.copy("published")))["apart"]
    assert proof.line_of(copies, lambda *_, **__: advice(PRE))["apart"]
    assert not proof.line_of(copies, lambda *_, **__: advice())["apart"]


def test_where_the_best_is_known_the_advice_compares_what_decide_compared(proof: Any, ask: Callable[..., Any]) -> None:
    """The same connections, trained by the same optimiser, at the same width, batch and data."""
    for family in ("conv", "transformer"):
        make = Mock(return_value=advice(GATE))
        proof.line_of(proof.Task("known", 0, proof.Known(family, 5, GATE)), make)
        words = make.call_args.kwargs
        request = ask(family, depth=5, width=None, batch_size=None, data=words["data"], block=words["block"],
                      optimiser=words["optimiser"])  # fmt: skip
        part = vision().only([family]).candidates
        assert set(request.connections) == {Connection(one.template.block, one.template.start) for one in part}
        (known,) = {
            (
                one.template.nominal_width,
                one.template.batch_size,
                one.template.dataset,
                one.template.recipe["optimiser"],
            )
            for one in part
        }
        cell = request.run(request.connections[0], 90, 0.01, 0)
        assert (cell.nominal_width, cell.batch_size, cell.dataset, cell.recipe["optimiser"]) == known
        assert cell.recipe["dataset"] == part[0].template.recipe["dataset"]


def test_lines_are_not_made_again(proof: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "lines.jsonl"
    made: list[tuple[str, Any]] = []

    def make(family: str, **words: Any) -> Any:
        made.append((family, words))
        if len(made) == 4:
            raise KeyboardInterrupt
        return advice(GATE)

    todo = proof.tasks([proof.Known("conv", 5, GATE)])[:6]
    with pytest.raises(KeyboardInterrupt):
        proof.collect(todo, file, make)
    assert len(proof.lines_in(file)) == 3
    proof.collect(todo, file, make)
    assert len(made) == 7
    assert proof.counts(proof.lines_in(file)) == {"known": 3, "held": 3, "copies": 3, "apart": 3}
    assert len({(words["repetition"], family) for family, words in made}) == 6
    proof.judge(file)
    assert "| 3 | 3 | 3 | 3 | 0 |" in capsys.readouterr().out


def test_the_document_has_the_counts(proof: Any, script: Callable[[str], Any], tmp_path: Path) -> None:
    docs = script("advice_docs")
    text = docs.DOCUMENT.read_text(encoding="utf-8")
    assert docs.NOT_MEASURED in docs.with_part(text, docs.CALIBRATION, docs.calibration_lines(tmp_path / "none", None))
    proof.collect(proof.tasks([])[:2], tmp_path / "lines.jsonl", lambda *_, **__: advice(GATE))
    lines = docs.calibration_lines(tmp_path / "lines.jsonl", None)
    assert lines[-1] == "| 0 | 0 | 2 | 2 | 0 |"
    with pytest.raises(SystemExit, match="has no part 'other'"):
        docs.with_part(text, "other", lines)


def test_without_known_bests_only_copies_are_compared(proof: Any) -> None:
    assert {task.kind for task in proof.tasks([])} == {"copies"}
    assert len(proof.tasks([])) == 20
