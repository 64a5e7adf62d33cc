"""Same numbers: twenty small cells of all kinds, whose values a committed file has.

    python -m tests.same_numbers            # compare with tests/same_numbers.json
    python -m tests.same_numbers --record   # after a version was raised: write that file again

Libraries are told to use no instructions that only some processors have. Even so, only the processor that recorded the
file must give every bit; another may round differently, within ``CLOSE``.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from highway_bench.cell import Cell
from highway_bench.provenance.machine import host, torch_version

FILE = Path(__file__).with_suffix(".json")
PORTABLE = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
CLOSE = 1e-4  # relative

TRAINED: dict[str, Any] = {"task": "trainability", "dataset": "digits", "batch_size": 8, "depth": 3}
ADAM, SGD = {"optimiser": "adam", "rate": 0.003}, {"optimiser": "sgd", "rate": 0.05, "momentum": 0.9, "decay": 0.1}
SHORT = {"steps": 4, "verdict": False}
CELLS: tuple[dict[str, Any], ...] = (
    {**TRAINED, "block": "highway", "family": "dense", "recipe": SGD | SHORT},
    {**TRAINED, "block": "pre-norm", "family": "dense-pair", "recipe": ADAM | SHORT, "dataset": "mnist-5k"},
    {**TRAINED, "block": "highway-free", "family": "conv", "recipe": ADAM | SHORT},
    {**TRAINED, "block": "rezero", "family": "conv-pair", "recipe": SGD | SHORT},
    {**TRAINED, "block": "deepnorm", "family": "bilstm", "recipe": ADAM | SHORT},
    {**TRAINED, "block": "highway", "family": "transformer", "recipe": ADAM | SHORT, "start": "depth-aware"},
    {**TRAINED, "block": "hc-dynamic", "family": "mlp", "recipe": ADAM | SHORT},
    {**TRAINED, "block": "post-norm", "family": "attention", "recipe": ADAM | SHORT, "dataset": "copy"},
    {**TRAINED, "block": "highway", "family": "dense", "depth": 2, "recipe": SGD | SHORT | {"together": 3}},
    {"task": "gates", "block": "highway", "family": "dense", "depth": 3, "dataset": "digits", "recipe": ADAM | SHORT},
    {"task": "propagation", "block": "highway", "family": "dense", "depth": 3, "dtype": "float64"},
    {"task": "propagation", "block": "norm-scaled", "family": "conv", "depth": 3, "dtype": "float64"},
    {"task": "propagation", "block": "attn-residual", "family": "transformer", "depth": 3, "dtype": "float64"},
    {"task": "propagation", "block": "sandwich-norm", "family": "bilstm", "depth": 3, "dtype": "float64"},
    {"task": "cost", "block": "mhc", "family": "transformer", "depth": 3},
    {"task": "cost", "block": "highway", "family": "conv", "depth": 19, "recipe": {"layout": "conv-highway"}},
    {"task": "cost", "block": "keel", "family": "dense", "depth": 3},
    {"task": "memory", "block": "highway", "family": "dense", "depth": 3, "phase": "train-step"},
    {"task": "memory", "block": "pre-norm", "family": "conv", "depth": 3, "phase": "forward-backward"},
    {"task": "memory", "block": "dense-average", "family": "transformer", "depth": 3, "phase": "train-step"},
)


def measured() -> dict[str, dict[str, float | None]]:
    """By cell, its values by metric, axis and index, measured in a process of its own."""
    command = [sys.executable, "-m", "tests.same_numbers", "--print"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | PORTABLE, cwd=FILE.parents[1], check=False
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    values: dict[str, dict[str, float | None]] = json.loads(ran.stdout)
    return values


def differences(values: dict[str, dict[str, float | None]]) -> list[str]:
    """What differs from the committed file, a line each."""
    recorded = json.loads(FILE.read_text(encoding="utf-8"))
    exact = recorded["processor"] == host() and recorded["torch"] == torch_version()
    lines = []
    for cell, expected in recorded["values"].items():
        found = values.get(cell, {})
        for name in expected.keys() | found.keys():
            before, now = expected.get(name), found.get(name)
            same = before == now or not (exact or before is None or now is None or not close(before, now))
            lines += [] if same else [f"{cell}: {name} was {before}, is {now}"]
    return lines


def close(before: float, now: float) -> bool:
    return math.isclose(before, now, rel_tol=CLOSE, abs_tol=CLOSE**2)


def cells() -> Iterator[Cell]:
    for one in CELLS:
        yield Cell(**{"width": 8, "nominal_width": 8, "batch_size": 4, "seed": 0} | one)


def values_here() -> dict[str, dict[str, float | None]]:
    import torch

    from highway_bench.tasks import tasks

    torch.set_num_threads(1)
    found = {}
    for cell in cells():
        population = [cell.but(seed=seed) for seed in range(cell.recipe.get("together", 1))]
        task = tasks.get(cell.task)
        for outcome in task.measure(population):
            if outcome.error is not None:
                raise outcome.error
            found[str(outcome.cell)] = {
                f"{one.metric} {one.axis} {one.index:g}".strip(): one.finite().value
                for one in outcome.measurements
                if task.metric(one.metric).unit != "s"  # times are never equal
            }
    return found


def record(values: dict[str, dict[str, float | None]]) -> None:
    about = {"processor": host(), "torch": torch_version(), "values": values}
    FILE.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(json.dumps(values_here()))
    elif "--record" in sys.argv:
        record(measured())
    else:
        sys.exit("\n".join(differences(measured())) or None)
