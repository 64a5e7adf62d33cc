"""``check``: what is said of a block that breaks the contract. A block that keeps it: see test_process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from highway_bench.blocks import blocks
from highway_bench.scaffold import block_text


@pytest.fixture
def bad_gate(here: Path) -> Iterator[str]:
    """A plug-in whose gate gets no gradient."""
    text = block_text("bad-gate")
    assert "y: Tensor = x + h * t " in text
    (here / "bad_gate.py").write_text(text.replace("x + h * t ", "x + h * t.detach() "))
    yield "bad_gate.py"
    blocks.unregister("bad-gate")
    sys.modules.pop("bad_gate", None)


def test_broken_contract(bad_gate: str, invoke: Any) -> None:
    done = invoke("check", "bad-gate", "--plugin", bad_gate, "--family", "mlp")
    assert done.exit_code == 1
    assert "trains everything" in done.stdout
    assert "detach nothing" in " ".join(done.stdout.split())
    assert done.stderr.startswith("highway-bench: bad-gate fails ")
    assert done.stderr.count("\n") == 1
