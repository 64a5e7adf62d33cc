"""What is read off the losses of a run, one a step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from highway_bench.results.schema import Status

CURVE_POINTS = 50


@dataclass(frozen=True)
class Verdict:
    """What the losses of a run say of it: its final loss (none where it diverged), its outcome with a remark, and the
    step by which it had reached the target."""

    final: float | None
    status: Status
    message: str | None
    reached: int | None


def judge(losses: Sequence[float], target: float, tail: int) -> Verdict:
    """Read a run off its losses, which end with the first that is not finite. It succeeds if the mean of the last
    ``tail``, its final loss, is at most ``target``."""
    reached = first_below(losses, target, tail)
    if not math.isfinite(losses[-1]):
        return Verdict(None, Status.DIVERGED, f"the loss was not finite at step {len(losses)}", reached)
    final = sum(losses[-tail:]) / len(losses[-tail:])
    return Verdict(final, Status.OK if final <= target else Status.STALLED, None, reached)


def first_below(losses: Sequence[float], target: float, window: int) -> int | None:
    """The first step, from 1, at which the mean of the last ``window`` losses is at most ``target``."""
    if len(losses) < window:
        return None
    means = torch.tensor(losses, dtype=torch.float64).unfold(0, window, 1).mean(-1)
    reached = (means <= target).nonzero()
    return int(reached[0]) + window if len(reached) else None


def curve(losses: Sequence[float], points: int = CURVE_POINTS) -> list[tuple[int, float]]:
    """The loss curve in at most ``points`` equal stretches: (last step, mean loss); a loss that is not finite ends
    it."""
    finite = list(itertools.takewhile(math.isfinite, losses))
    width = max(1, math.ceil(len(finite) / points))
    stretches = [finite[start : start + width] for start in range(0, len(finite), width)]
    return [(min((number + 1) * width, len(finite)), sum(part) / len(part)) for number, part in enumerate(stretches)]
