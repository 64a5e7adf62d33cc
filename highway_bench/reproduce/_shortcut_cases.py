"""The networks of table 1 of "Identity mappings in deep residual networks" and of its counter-result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from highway_bench.report.format import signed
from highway_bench.reproduce._published_nets import GATE_PAIR, NORMED
from highway_bench.reproduce.guards import Trained
from highway_bench.reproduce.quantities import Region

DEPTH, WIDTH, BATCH = 16, 16, 64  # 16 pairs of convolutions: 34 layers with the first and the last
STEPS = 800  # ten epochs
TRAINED = Trained("test_accuracy", Region(least=0.8, closed=True), "a test error of at most 20 %")
CLOSE = Trained(
    "test_accuracy", Region(least=0.95, closed=True), "a test error of at most 5 %", "is not near the end of training"
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A shortcut, and its published error as ResNet-110 on CIFAR-10."""

    name: str
    block: str
    published: str
    options: Mapping[str, Any] = field(default_factory=dict)
    family_options: Mapping[str, Any] = field(default_factory=lambda: NORMED)
    layout: str = "imagenet-resnet"
    width: int = WIDTH


IDENTITY = Case(name="identity", block="residual", published="6.61 %")
PLAIN = Case(name="constant 0, 1 (plain)", block="scaled", options={"skip": 0.0, "branch": 1.0}, published="fail")
HALF_ONE = Case(name="constant 0.5, 1", block="scaled", options={"skip": 0.5, "branch": 1.0}, published="fail")
HALVES = Case(name="constant 0.5, 0.5", block="scaled", options={"skip": 0.5, "branch": 0.5}, published="12.35 %")
EXCLUSIVE = {
    bias: Case(name=f"exclusive gate at {signed(bias)}", block="highway", options={"gate_bias": bias}, published=error)
    for bias, error in ((0.0, "fail"), (-3.0, "fail"), (-6.0, "8.70 %"), (-7.0, "9.81 %"))
}
SHORTCUT_ONLY = {
    bias: Case(
        name=f"shortcut-only gate at {signed(bias)}",
        block="shortcut-gate",
        options={"gate_bias": bias},
        published=error,
    )
    for bias, error in ((0.0, "12.86 %"), (-6.0, "6.91 %"))
}
NORMED_GATE = Case(
    name="gate of 2 × (conv + BN) at −6",
    block="highway",
    options={"gate_bias": -6.0},
    family_options=GATE_PAIR,
    layout="imagenet-resnet-b",
    width=14,
    published="6.04 %",
)
CASES: Sequence[Case] = (IDENTITY, PLAIN, HALF_ONE, HALVES, *EXCLUSIVE.values(), *SHORTCUT_ONLY.values(), NORMED_GATE)
