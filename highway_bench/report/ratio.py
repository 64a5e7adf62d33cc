"""How a measured ratio is quoted: with its 95 % interval, called undecided where that is wide, or not at all.

A ratio is decided if both ends of its interval are within ``UNDECIDED`` (10 %) of its value, taken as factors, so that
a ratio and one over it are decided alike: max(high / value, value / low) ≤ 1.1. Ratios of exact counts (bytes,
parameters, FLOP) are no measurements and are not for this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from highway_bench.report.format import NONE, between, three

UNDECIDED: Final = 0.10
"""How far an end of the interval may be from the value, as a share of it."""

PERCENT: Final = f"{100 * UNDECIDED:g} %"

NOT_PAIRED: Final = "not paired"
TOO_FEW: Final = "too few samples"
NO_PLAIN: Final = "plain not timed"
NOT_TIMED: Final = "not timed"

MEANINGS: Final = {
    "undecided [": f"“undecided”: the 95 % interval reaches more than {PERCENT} from the value. More samples "
    "(--recipe seconds=2) or a machine that does nothing else make it narrower.",
    f"{NOT_PAIRED}: ": f"“{NOT_PAIRED}: …”: the steps of this block and of plain could not be sampled in turn, for the "
    "reason that follows the colon. To time them again gives the same while the reason lasts: leave out the block that "
    "fails, or take a smaller size.",
    NOT_PAIRED: f"“{NOT_PAIRED}”: the steps of this block and of plain were not sampled in turn in one run, so that "
    "nothing is known of the ratio. Time all blocks together: highway-bench run throughput --fresh.",
    TOO_FEW: f"“{TOO_FEW}”: there are too few pairs of steps for an interval. Take more: --recipe samples=20.",
    NO_PLAIN: f"“{NO_PLAIN}”: there is nothing to compare with. Add --block plain.",
    NOT_TIMED: f"“{NOT_TIMED}”: training runs take their steps apart, which gives no ratio. "
    "Time them in turn: highway-bench run throughput.",
}
"""What a quoted ratio's words mean, and what to do about it, by how the text begins: the first that fits counts."""


def is_decided(value: float, low: float, high: float) -> bool:
    """Whether both ends are within ``UNDECIDED`` of ``value``; not where an end is missing."""
    return max(high / value, value / low) <= 1 + UNDECIDED if low > 0 and value > 0 else False


def quoted(value: float, low: float, high: float, gap: str = "") -> str:
    """A ratio as it is read: ``1.54 [1.50, 1.58]``, or ``undecided [0.900, 1.60]``.

    Without an interval there is no number: ``gap`` says why, else a dash. The ratio of plain to itself is ``1``.
    """
    interval = between(low, high)
    if not interval:
        return gap or NONE
    if value == low == high == 1:
        return "1"
    return f"{three(value)} {interval}" if is_decided(value, low, high) else f"undecided {interval}"


def geometric_mean(ratios: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """The mean of several ratios (value, low, high), and of their ends likewise.

    That interval is on the careful side: errors that are independent cancel in part.
    """
    value, low, high = (
        math.exp(math.fsum(map(math.log, column)) / len(ratios)) for column in zip(*ratios, strict=True)
    )
    return value, low, high


def meanings(texts: Iterable[str]) -> list[str]:
    """What the words of these quoted ratios mean, each once."""
    begins = {next((word for word in MEANINGS if text.startswith(word)), "") for text in texts}
    return [meaning for word, meaning in MEANINGS.items() if word in begins]
