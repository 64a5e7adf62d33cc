"""Evaluation: the loss and accuracy of a network on a batch or over a split."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from highway_bench.data import Split
from highway_bench.data.base import IGNORED, TargetKind

LossFunction = Callable[[Tensor, Tensor], Tensor]
"""From a network's outputs and a batch's targets to one number: a loss of the user's own."""


class Evaluation(NamedTuple):
    """Mean loss and accuracy (0 … 1) over a split.

    ``accuracy`` is ``None`` for scalar targets, and where the loss is not finite: ``argmax`` of NaN outputs is class 0.
    """

    loss: float
    accuracy: float | None

    @property
    def error(self) -> float | None:
        """The share of wrong predictions; ``None`` where there is no accuracy."""
        return None if self.accuracy is None else 1 - self.accuracy


def device_and_dtype(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the dtype of ``network``'s parameters, complex ones and integers aside."""
    first = next(parameter for parameter in network.parameters() if parameter.is_floating_point())
    return first.device, first.dtype


def to_device(part: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """``part`` on ``device``. Floating-point values are cast to ``dtype``; classes and tokens stay integers."""
    return part.to(device, dtype if part.is_floating_point() else part.dtype, non_blocking=True)


def to_gpu(split: Split, device: torch.device, dtype: torch.dtype) -> Split:
    """The whole ``split`` on ``device``."""
    return Split(*(to_device(part, device, dtype) for part in split))


def loss_of(outputs: Tensor, targets: Tensor, kind: TargetKind, own: LossFunction | None = None) -> Tensor:
    """Mean cross entropy in nat for classes and tokens (targets ``IGNORED`` do not count) and for each of several
    labels, mean squared error for scalars; the user's ``own`` loss if there is one."""
    if own is not None:
        return own(outputs, targets)
    if kind == "scalar":
        return functional.mse_loss(outputs, targets.to(outputs.dtype))
    if kind == "label":
        return functional.binary_cross_entropy_with_logits(outputs, targets)
    if kind == "token":
        return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    return functional.cross_entropy(outputs, targets)


@torch.no_grad()
def evaluate(
    network: nn.Module,
    split: Split,
    kind: TargetKind,
    *,
    own: LossFunction | None = None,
    batch_size: int = 500,
    at_most: int | None = None,
) -> Evaluation:
    """Loss and accuracy of ``network`` in evaluation mode on the split, or on its first ``at_most`` items.

    ``own`` is the user's own loss, if there is one. Every target has the same weight, whatever the batch size."""
    network.eval()
    device, dtype = device_and_dtype(network)
    total, right, targets_seen = 0.0, 0, 0
    count = len(split.inputs) if at_most is None else min(at_most, len(split.inputs))
    for start in range(0, count, batch_size):
        inputs, targets = (to_device(part[start : min(start + batch_size, count)], device, dtype) for part in split)
        here = len(inputs) if kind == "scalar" else int((targets != IGNORED).sum())
        outputs = network(inputs)
        if here:  # a mean over no target is NaN
            total += float(loss_of(outputs, targets, kind, own)) * here
            if kind != "scalar":
                right += int(((outputs > 0) if kind == "label" else outputs.argmax(-1)).eq(targets).sum())
            targets_seen += here
    loss = total / targets_seen if targets_seen else math.nan
    return Evaluation(loss, None if kind == "scalar" or not math.isfinite(loss) else right / targets_seen)


@torch.no_grad()
def mistakes(network: nn.Module, split: Split, most: int, *, batch_size: int = 500) -> list[tuple[int, int]]:
    """The first ``most`` items of ``split`` that ``network`` classifies wrongly: (row, predicted class)."""
    network.eval()
    device, dtype = device_and_dtype(network)
    wrong: list[tuple[int, int]] = []
    for start in range(0, len(split.inputs), batch_size):
        inputs, targets = (to_device(part[start : start + batch_size], device, dtype) for part in split)
        predicted = network(inputs).argmax(-1)
        rows = (predicted != targets).nonzero().flatten().tolist()
        wrong += [(start + row, int(predicted[row])) for row in rows]
        if len(wrong) >= most:
            break
    return wrong[:most]
