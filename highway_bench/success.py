"""Success: the one rule by which a run succeeds and a depth trains, and how deep a block trains by it.

A run's losses are read by ``judge``, the runs of one depth by ``verdict``, the depths of a ladder by ``l_max`` (the
rule: the deepest depth that trains, with none failing before it), ``l50`` (the estimate, with its interval) and
``area_under_success``; these are censored where the ladder ends. ``EXPLAINED`` says all of it in words. Needs numpy and
scipy and no torch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from highway_bench.errors import BadInput
from highway_bench.measure.statistics import CONFIDENCE, RESAMPLES, Array, check_counts, checked_confidence
from highway_bench.results.schema import Status

THRESHOLD = 0.1  # of the constant predictor's loss, where a recipe does not say
TAIL = 0.05  # share of the run whose mean loss is its final loss
TRAINABLE = 0.9  # share of seeds that must succeed
FULL_SEEDS = 10  # fewer make a verdict provisional
LEAST_SEEDS = 5  # fewer make none
ROUNDING = 1e-9  # 0.9 · n is not exact in binary

TRAINS, STALLS, OPEN, FEW, NO_VERDICT = "trains", "does not train", "undecided", "not enough seeds", "no verdict"
NOT_RUN: Final = "not measured"

EXPLAINED: Final = {
    "trains": f"A run succeeds if every loss is finite and the mean of its last {TAIL:.0%} of training losses is at "
    f"most {THRESHOLD:.0%} of what the best constant answer would score. A depth trains if at least {TRAINABLE:.0%} of "
    f"its seeds succeed. Fewer than {FULL_SEEDS} seeds make a verdict provisional, fewer than {LEAST_SEEDS} make none.",
    "stalled, diverged": "Outcomes, not errors: the run ended above the threshold, or its loss stopped being finite. "
    "A diverged run ranks last and is never dropped.",
    "L_max": "The largest depth of the ladder that trains with every shallower one training too. A rule, not an "
    "estimate. “≥” means that the ladder ended first, “<” that its first depth did not train.",
    "L50": "The depth at which half of the seeds succeed, from a monotone fit over all seeds and depths, with a 95 % "
    "bootstrap interval over seeds. “>” and “<” mean that it lies beyond the ladder.",
    "area": "Area under the share of seeds that succeed against the logarithm of depth, as a share of the ladder's: "
    "100 % where every seed trains at every depth. Depths beyond one at which no seed trained count as failed.",
}
"""The rule in words, by the word that it explains."""


@dataclass(frozen=True)
class Judgement:
    """What the losses of a run say of it: its final loss (none where it diverged), its outcome with a remark, and the
    step by which it had reached the target."""

    final: float | None
    status: Status
    message: str | None
    reached: int | None


def judge(losses: Sequence[float], target: float, steps: int) -> Judgement:
    """Read a run of ``steps`` off its losses, one a step, which end with the first that is not finite. It succeeds if
    the mean of the last ``TAIL`` of them, its final loss, is at most ``target``."""
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


def verdict(successes: int, runs: int, unfinished: int = 0) -> str:
    """What ``runs`` at one depth say of it. Runs that did not finish could have gone either way: the rule must hold
    both ways."""
    if runs == 0:
        return NOT_RUN
    if runs + unfinished < LEAST_SEEDS:
        return FEW
    least = TRAINABLE * (runs + unfinished) - ROUNDING
    return TRAINS if successes >= least else STALLS if successes + unfinished < least else OPEN


Success = Mapping[int, tuple[int, int]]  # depth → (runs that succeeded, runs)
Censored = Literal["left", "right"] | None


@dataclass(frozen=True)
class LMax:
    """The deepest rung that is trainable with no failing shallower one; ``None`` (``left``) where the shallowest fails.

    ``right``: the whole ladder is trainable. ``provisional``: some rung of the verdict had fewer than ten seeds.
    """

    value: int | None
    shallowest: int
    censored: Censored
    provisional: bool

    def __str__(self) -> str:
        depth = f"< {self.shallowest}" if self.value is None else f"{'≥ ' * (self.censored == 'right')}{self.value}"
        return depth + " (provisional)" * self.provisional


@dataclass(frozen=True)
class L50:
    """The depth at which half the runs succeed, with its interval.

    Where the ladder ends first, ``value`` is its last rung on that side and ``censored`` says which: ``right``, L50
    lies deeper; ``left``, shallower. A censored value is a bound and must not be averaged. An end of the interval that
    no rung bounds is infinite (``high``) or 0 (``low``).
    """

    value: float
    low: float
    high: float
    censored: Censored

    def __str__(self) -> str:
        if self.censored:
            return f"{'>' if self.censored == 'right' else '<'} {self.value:.4g}"
        ends = (
            "below the ladder" if self.low == 0 else f"{self.low:.3g}",
            "beyond the ladder" if math.isinf(self.high) else f"{self.high:.3g}",
        )
        return f"{self.value:.3g} [{ends[0]}, {ends[1]}]"


def l_max(success: Success, share: float = TRAINABLE) -> LMax:
    """Read ``success`` by the rule: a rung is trainable if at least ``share`` of its seeds succeed."""
    ladder = _ladder(success)
    reached: int | None = None
    provisional = False
    for depth, k, n in ladder:
        provisional = provisional or n < FULL_SEEDS
        if k < share * n - ROUNDING:
            break
        reached = depth
    censored: Censored = "left" if reached is None else "right" if reached == ladder[-1][0] else None
    return LMax(reached, ladder[0][0], censored, provisional)


def l50(success: Success, confidence: float = CONFIDENCE, *, seed: int = 0) -> L50:
    """Where a falling (isotonic) fit of success rate on log depth crosses one half, straight between rungs.

    The interval is a percentile bootstrap over the seeds, resampled within each depth. It is never narrower than the
    two rungs that bracket the crossing: where every seed agrees, resampling shows no spread, but the ladder has not
    looked between its rungs.
    """
    ladder = _ladder(success)
    depths, counts, totals = (np.array(column) for column in zip(*ladder, strict=True))
    best = _crossing(depths, counts / totals, totals)

    draws = np.random.default_rng(seed).binomial(totals, counts / totals, size=(RESAMPLES, len(totals)))
    resampled, times = np.unique(draws, axis=0, return_counts=True)  # few distinct ones: fit each of them once
    crossings = np.repeat([_crossing(depths, row / totals, totals).middle for row in resampled], times)
    tail = (1 - checked_confidence(confidence)) / 2
    low = min(float(np.quantile(crossings, tail, method="lower")), best.below)
    high = max(float(np.quantile(crossings, 1 - tail, method="higher")), best.above)

    ends: dict[float, Censored] = {math.inf: "right", 0.0: "left"}
    middle = min(max(best.middle, float(depths[0])), float(depths[-1]))
    return L50(middle, low, high, ends.get(best.middle))


def area_under_success(success: Success) -> float:
    """Area under success rate against log depth, by trapezoids, as a share of the ladder's: 0 … 1."""
    ladder = _ladder(success)
    rates = [k / n for _, k, n in ladder]
    if len(ladder) == 1:
        return rates[0]
    x = np.log([depth for depth, _, _ in ladder])
    return float(np.trapezoid(rates, x) / (x[-1] - x[0]))


class _Crossing(NamedTuple):
    """Depth at which a fit crosses one half, and the rungs around it; infinite or 0 off the ladder's ends."""

    middle: float
    below: float
    above: float


def _crossing(depths: NDArray[np.int_], rates: Array, weights: NDArray[np.int_]) -> _Crossing:
    fit = optimize.isotonic_regression(rates, weights=weights, increasing=False).x - 0.5
    fit[np.abs(fit) < 1e-12] = 0.0  # pooled rates that are one half but for rounding
    if fit[-1] > 0:
        return _Crossing(math.inf, float(depths[-1]), math.inf)
    if fit[0] < 0:
        return _Crossing(0.0, 0.0, float(depths[0]))
    over, level, under = (np.flatnonzero(test) for test in (fit > 0, fit == 0, fit < 0))
    below = float(depths[over[-1]]) if len(over) else 0.0
    above = float(depths[under[0]]) if len(under) else math.inf
    if len(level):  # a stretch at one half is crossed in its middle
        middle = math.sqrt(depths[level[0]] * depths[level[-1]])
    else:
        drop = fit[over[-1]] - fit[under[0]]
        middle = below * (above / below) ** float(fit[over[-1]] / drop)
    return _Crossing(middle, below, above)


def _ladder(success: Success) -> list[tuple[int, int, int]]:
    """(depth, successes, runs), shallowest first."""
    if not success:
        raise BadInput("there is no depth")
    for depth, (k, n) in success.items():
        check_counts(k, n)
        if depth < 1:
            raise BadInput(f"a depth is at least 1, not {depth}")
    return sorted((depth, k, n) for depth, (k, n) in success.items())
