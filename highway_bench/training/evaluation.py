"""Answers: what a network's outputs are worth, on a batch or over a whole split."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from highway_bench.data import Split
from highway_bench.data.base import TargetKind


class Answers(NamedTuple):
    """Loss and accuracy over a split. No accuracy where targets are scalars, and where the loss is not finite: the
    largest of outputs that are no numbers is the first class."""

    loss: float
    accuracy: float | None


def place_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the dtype of ``network``'s parameters."""
    first = next(network.parameters())
    return first.device, first.dtype


def placed(part: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """``part`` on ``device``, floating-point numbers in ``dtype``; classes and tokens stay whole numbers."""
    return part.to(device, dtype if part.is_floating_point() else part.dtype, non_blocking=True)


def loss_of(answers: Tensor, targets: Tensor, kind: TargetKind) -> Tensor:
    """Mean cross entropy in nat for classes and tokens (targets of −100 do not count), mean squared error for
    scalars."""
    if kind == "scalar":
        return functional.mse_loss(answers, targets.to(answers.dtype))
    if kind == "token":
        return functional.cross_entropy(answers.flatten(0, 1), targets.flatten(), ignore_index=-100)
    return functional.cross_entropy(answers, targets)


@torch.no_grad()
def evaluate(
    network: nn.Module, split: Split, kind: TargetKind, *, batch_size: int = 500, at_most: int | None = None
) -> Answers:
    """Loss and accuracy of ``network`` in evaluation mode on the split, or on its first ``at_most`` items; every target
    that counts does so once, however they fall into batches."""
    network.eval()
    device, dtype = place_of(network)
    total, right, asked = 0.0, 0, 0
    count = len(split.inputs) if at_most is None else min(at_most, len(split.inputs))
    for start in range(0, count, batch_size):
        inputs, targets = (placed(part[start : min(start + batch_size, count)], device, dtype) for part in split)
        here = len(inputs) if kind == "scalar" else int((targets != -100).sum())
        answers = network(inputs)
        if here:  # a mean over no target is no number
            total += float(loss_of(answers, targets, kind)) * here
            right += 0 if kind == "scalar" else int((answers.argmax(-1) == targets).sum())
            asked += here
    loss = total / asked if asked else math.nan
    return Answers(loss, None if kind == "scalar" or not math.isfinite(loss) else right / asked)


@torch.no_grad()
def mistakes(network: nn.Module, split: Split, most: int, *, batch_size: int = 500) -> list[tuple[int, int]]:
    """The first ``most`` items of ``split`` whose class ``network`` gets wrong: (row, the class that it gave)."""
    network.eval()
    device, dtype = place_of(network)
    found: list[tuple[int, int]] = []
    for start in range(0, len(split.inputs), batch_size):
        inputs, targets = (placed(part[start : start + batch_size], device, dtype) for part in split)
        given = network(inputs).argmax(-1)
        wrong = (given != targets).nonzero().flatten().tolist()
        found += [(start + row, int(given[row])) for row in wrong]
        if len(found) >= most:
            break
    return found[:most]
