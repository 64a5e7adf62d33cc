"""Precision: float32 is IEEE float32 wherever something is measured, whatever torch and the environment prefer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READ = """
import torch
print(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision())
"""
STARTS = {
    "worker": "from highway_bench.run.worker import start; start('memory', 1, ())",
    "history": "from benches.history.blocks import asv_api; asv_api()",
    "step benches": "import benches.conftest",
}


@pytest.mark.parametrize("override", ["0", "1"])
@pytest.mark.parametrize("start", STARTS)
def test_float32_is_ieee_where_something_is_measured(start: str, override: str) -> None:
    """In a process of its own: torch reads the variable once, at its import."""
    environment = os.environ | {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": override, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", STARTS[start] + READ],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "False False highest\n"), done.stderr
