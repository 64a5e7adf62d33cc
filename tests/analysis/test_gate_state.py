"""The state of gates by hand."""

from __future__ import annotations

import math

import pytest
import torch

from highway_bench.analysis.gate_state import gate_state


def test_means_and_saturation() -> None:
    logit = math.log(0.04 / 0.96)
    found = gate_state([torch.tensor([[0.0, logit]]), torch.tensor([[-logit, -logit]])])
    assert found.means == pytest.approx((0.27, 0.96))
    assert found.saturated == 0.75
    assert gate_state([torch.full((2, 3), math.log(0.06 / 0.94))]).saturated == 0.0
