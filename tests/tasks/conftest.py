"""What the tasks' tests share: small cells, and a device that needs no measuring."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from highway_bench.cell import Cell
from highway_bench.tasks import throughput

FLOOR = 1e-3


@pytest.fixture
def cell() -> Callable[..., Cell]:
    """Makes a small cell; what is no field of a cell goes into the recipe."""

    def make(task: str, block: str = "highway", family: str = "dense", *, width: int = 8, **changes: Any) -> Cell:
        fields = {name: changes.pop(name) for name in list(changes) if name in Cell.__dataclass_fields__}
        defaults: dict[str, Any] = {"depth": 2, "batch_size": 4, "nominal_width": width, "match": "width",
                                    "phase": None if task == "trainability" else "forward-backward"}
        return Cell(task=task, block=block, family=family, width=width,
                    **{**defaults, **fields, "recipe": {**fields.get("recipe", {}), **changes}})

    return make


@pytest.fixture
def roofline(monkeypatch: pytest.MonkeyPatch) -> float:
    """Puts a constant in the place of the measured roofline: every step's floor, in seconds."""
    measured = SimpleNamespace(floor=lambda flops, least_bytes: FLOOR, matmul_rate=3e9, conv_rate=2e9, copy_rate=1e9)
    monkeypatch.setattr(throughput, "measure_roofline", lambda *_: measured)
    return FLOOR
