"""Gate statistics: how open gates are in one pass, and which are open per example and on average, over batches.

The thresholds are this project's own: a gate counts as shut below 0.05, open above 0.5 and full above 0.95.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

SHUT, OPEN, FULL = 0.05, 0.5, 0.95
SATURATED = 0.45  # |σ(a) − ½| above it: the gate is within 0.05 of shut or full, where its slope is below 0.0475
SOME = 0.01  # share of the items for which a unit must be open to count as used


@dataclass(frozen=True)
class GateState:
    """The gates of one layer: the mean of each, and the share of all their values that are saturated."""

    means: tuple[float, ...]
    saturated: float


@torch.no_grad()
def gate_state(activations: Sequence[Tensor]) -> GateState:
    """The state of the gates σ(aᵢ); ``activations`` are the pre-activations aᵢ, all of one shape."""
    gates = torch.sigmoid(torch.stack([one.double() for one in activations])).flatten(1)
    return GateState(tuple(gates.mean(1).tolist()), float(((gates - 0.5).abs() > SATURATED).double().mean()))


def sparsity(values: Tensor) -> Tensor:
    """Hoyer's sparsity over the last axis: (√n − ‖v‖₁/‖v‖₂) / (√n − 1), 0 where all are equal, 1 where only one is not
    zero.

    It does not depend on the values' scale, and is 0 where all are zero. (Hoyer 2004, JMLR 5, §3.1.)
    """
    return _hoyer(values.abs().sum(-1), values.square().sum(-1), values.shape[-1])


def _hoyer(total: Tensor, squares: Tensor, n: int | Tensor) -> Tensor:
    root = torch.as_tensor(n, dtype=total.dtype, device=total.device).sqrt()
    return torch.where((squares > 0) & (root > 1), (root - total / squares.sqrt().clamp(min=1e-300)) / (root - 1), 0.0)


def _without(values: Tensor, real: Tensor | None) -> Tensor:
    """``values`` (items, positions, units) with zeros at positions that are not ``real`` (items, positions)."""
    return values if real is None else values.masked_fill(~real.unsqueeze(-1), 0)


def _position_counts(values: Tensor, real: Tensor | None) -> Tensor:
    """How many positions of each item count: (items,)."""
    if real is None:
        return values.new_full((len(values),), values.shape[1])
    return real.sum(1).to(values)


@dataclass
class Activity:
    """Gate values of one layer. ``add`` takes (items, positions, units) in [0, 1], the items in the order of
    ``classes``.

    Where an item has several positions (pixels, steps), each counts as an example of its own. With padding, only
    positions that are ``real`` (items, positions) count. ``classes`` are the classes of all items, or ``None`` where
    items have none.
    """

    classes: Tensor | None = None
    items: int = 0
    examples: int = 0
    sums: dict[str, Tensor] = field(default_factory=dict)  # by unit
    by_class: Tensor | None = None  # (classes, units)
    class_counts: Tensor | None = None

    def add(self, values: Tensor, real: Tensor | None = None) -> None:
        values = values.detach().double()
        flat = values.flatten(0, 1) if real is None else values[real]
        for name, seen in (("value", flat), ("open", flat > OPEN), ("full", flat > FULL)):
            self.sums[name] = self.sums.get(name, 0) + seen.sum(0, dtype=torch.float64)
        if self.classes is not None:
            self._add_classes(_without(values, real).sum(1), _position_counts(values, real))
        self.items += len(values)
        self.examples += len(flat)

    def _add_classes(self, totals: Tensor, positions: Tensor) -> None:
        assert self.classes is not None
        if self.by_class is None or self.class_counts is None:
            count = int(self.classes.max()) + 1
            self.by_class = totals.new_zeros(count, totals.shape[-1])
            self.class_counts = totals.new_zeros(count)
        classes = self.classes[self.items : self.items + len(totals)].to(totals.device)
        self.by_class.index_add_(0, classes, totals)
        self.class_counts.index_add_(0, classes, positions)

    def mean(self) -> Tensor:
        """Mean over examples of every unit's gate: (units,)."""
        return self.sums["value"] / self.examples

    def shut(self) -> float:
        """Share of units whose mean is below ``SHUT``."""
        return float((self.mean() < SHUT).double().mean())

    def full(self) -> float:
        """Share of units and examples above ``FULL``: where the gates are coupled, C = 1 − T is nearly closed."""
        return float(self.sums["full"].mean() / self.examples)

    def open_for_one(self) -> float:
        """Share of units above ``OPEN`` for an example, averaged over examples."""
        return float(self.sums["open"].mean() / self.examples)

    def open_on_average(self) -> float:
        """Share of units whose mean is above ``OPEN``."""
        return float((self.mean() > OPEN).double().mean())

    def open_for_some(self) -> float:
        """Share of units above ``OPEN`` for at least one example in a hundred."""
        return float((self.sums["open"] >= SOME * self.examples).double().mean())

    def class_spread(self) -> float | None:
        """Standard deviation of a unit's class means, averaged over units; ``None`` without classes."""
        if self.by_class is None or self.class_counts is None:
            return None
        present = self.class_counts > 0
        means = self.by_class[present] / self.class_counts[present].unsqueeze(-1)
        return float(means.std(0, correction=0).mean())


@dataclass
class ExampleSparsity:
    """Hoyer's sparsity of each item's gates over all layers together; values are added layer by layer."""

    items: int
    total: Tensor = field(init=False)
    squares: Tensor = field(init=False)
    n: Tensor = field(init=False)  # gates of each item, all layers
    seen: dict[int, int] = field(default_factory=dict)  # items so far, by layer

    def __post_init__(self) -> None:
        self.total = torch.zeros(self.items, dtype=torch.float64)
        self.squares = torch.zeros(self.items, dtype=torch.float64)
        self.n = torch.zeros(self.items, dtype=torch.float64)

    def add(self, layer: int, values: Tensor, real: Tensor | None = None) -> None:
        """Add one layer's values (items, positions, units) of the next items; only ``real`` (items, positions) ones
        count."""
        flat = _without(values.detach().double(), real).flatten(1).cpu()
        first = self.seen.get(layer, 0)
        items = slice(first, first + len(flat))
        self.n[items] += values.shape[-1] * _position_counts(values, real).double().cpu()
        self.total[items] += flat.sum(1)
        self.squares[items] += flat.square().sum(1)
        self.seen[layer] = first + len(flat)

    def mean(self) -> float:
        """The mean over items."""
        return float(_hoyer(self.total, self.squares, self.n).mean())
