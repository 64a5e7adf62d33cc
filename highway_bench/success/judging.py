"""Judging a run by its losses: the constants of the rule, and the result of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from highway_bench.results.schema import Status

THRESHOLD = 0.1  # default target, as a share of the best constant predictor's loss
TAIL = 0.05  # the final loss is the mean over this last share of the run


def success_loss(chance_loss: float, reference_loss: float | None, threshold: float = THRESHOLD) -> float:
    """The target of a run: ``threshold`` × ``chance_loss``, the best constant predictor's loss.

    A data set with a ``reference_loss`` has that as its target, unless the threshold is another than the default.
    """
    return threshold * chance_loss if reference_loss is None or threshold != THRESHOLD else reference_loss


@dataclass(frozen=True)
class Judgement:
    """The result of one run: its final loss (``None`` if it diverged), its status with a message, and the first step
    at which it had reached the target."""

    final: float | None
    status: Status
    message: str | None
    reached: int | None


def judge(losses: Sequence[float], target: float, steps: int) -> Judgement:
    """Judge a run of ``steps`` steps by its losses, one per step, up to the first that is not finite.

    The run succeeds if its final loss, the mean over the last ``TAIL`` of the steps, is at most ``target``."""
    tail = max(1, round(TAIL * steps))
    reached = first_below(losses, target, tail)
    if not math.isfinite(losses[-1]):
        return Judgement(None, Status.DIVERGED, f"the loss was not finite at step {len(losses)}", reached)
    final = sum(losses[-tail:]) / len(losses[-tail:])
    return Judgement(final, Status.OK if final <= target else Status.STALLED, None, reached)


def first_below(losses: Sequence[float], target: float, window: int) -> int | None:
    """The first step, from 1, at which the mean of the last ``window`` losses is at most ``target``."""
    if len(losses) < window:
        return None
    means = np.lib.stride_tricks.sliding_window_view(np.asarray(losses, dtype=np.float64), window).mean(-1)
    reached = np.flatnonzero(means <= target)
    return int(reached[0]) + window if len(reached) else None
