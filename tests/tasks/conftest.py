"""Fixtures of the tasks' tests: a constant roofline and a data set with padding."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar, Literal

import pytest
import torch

from highway_bench.data import Data, DataSet, Split, datasets, register_dataset
from highway_bench.tasks import throughput

FLOOR = 1e-3


@pytest.fixture
def roofline(monkeypatch):
    """Replaces the measured roofline by a constant: every step's floor, in seconds."""
    measured = SimpleNamespace(floor=lambda flops, least_bytes: FLOOR, matmul_rate=3e9, conv_rate=2e9, copy_rate=1e9)
    monkeypatch.setattr(throughput, "measure_roofline", lambda *_: measured)
    return FLOOR


@pytest.fixture
def texts():
    """The name of a data set of twelve texts of one to six words, padded to ``length``; unregistered afterwards."""

    @register_dataset("short-texts", summary="twelve short texts", source="these tests")
    @dataclass(frozen=True)
    class ShortTexts(DataSet):
        padded: ClassVar[bool] = True
        input_kind: ClassVar[Literal["tokens"]] = "tokens"
        target_kind: ClassVar[Literal["class"]] = "class"
        outputs: ClassVar[int] = 2
        vocabulary: ClassVar[int] = 9
        chance_loss: ClassVar[float] = 0.693

        length: int = 6

        @property
        def input_shape(self) -> tuple[int, ...]:
            return (self.length,)

        def load(self, *, seed: int = 0) -> Data:
            words = torch.randint(1, 9, (12, 6), generator=torch.Generator().manual_seed(3))
            rows = torch.zeros(12, self.length, dtype=torch.int64)
            for index, row in enumerate(rows):
                row[: 1 + index // 2] = words[index, : 1 + index // 2]
            split = Split(rows, torch.arange(12) % 2)
            return Data(split, split)

    yield "short-texts"
    datasets.unregister("short-texts")
