"""The notation of measured ratios: value and 95 % interval, ``undecided`` and the interval, or the reason for neither.

A ratio is decided if max(high / value, value / low) ≤ 1 + ``UNDECIDED``. The rule takes factors, so a ratio and its
inverse are decided alike. Ratios of exact counts (bytes, parameters, FLOP) have no interval and do not come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from highway_bench.frames.cells import OLDER, ONE_PROCESS
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED
from highway_bench.report.format import NONE, between, three

UNDECIDED: Final = 0.10
"""The largest relative distance between the value and a bound of its interval."""

PERCENT: Final = f"{100 * UNDECIDED:g} %"

NOT_TIMED: Final = "not timed"

MEANINGS: Final = {
    "undecided [": f"“undecided”: the 95 % interval reaches more than {PERCENT} from the value. More processes "
    "(--recipe limit=60) or an idle machine make it narrower.",
    ALL_DISTURBED: "“every round was disturbed”: with several threads, or on a GPU, the machine's other work reaches "
    "every step, so the times tell about that work too. Time the cell on an idle machine.",
    ALL_CAPPED: "“the GPU's clock was capped”: heat or power lowered it in every round, so the times tell about the "
    "cooling too, and a step that takes more power loses more. The remark has the cause. Let the GPU cool down.",
    ONE_PROCESS: f"“{ONE_PROCESS}”: the interval of a ratio covers processes, and this cell was timed in one. Allow "
    "more: --recipe processes=3.",
    OLDER: f"“{OLDER}”: an older version timed this cell, without plain in the same rounds. Time it again: "
    "highway-bench run throughput.",
    NOT_TIMED: f"“{NOT_TIMED}”: no step was timed at this depth in turn with plain's, and the steps of training runs "
    "give no paired ratio. Time them: highway-bench run throughput.",
}
"""The meaning of the words in a quoted ratio, and the remedy. The first key in the text applies."""


def is_decided(value: float, low: float, high: float) -> bool:
    """Whether max(high / value, value / low) ≤ 1 + ``UNDECIDED``; false if a bound is missing."""
    return max(high / value, value / low) <= 1 + UNDECIDED if low > 0 and value > 0 else False


def quoted(value: float, low: float, high: float, gap: str = "", *, text: Callable[[float], str] = three) -> str:
    """A ratio as text: ``1.54 [1.50, 1.58]``, or ``undecided [0.900, 1.60]``.

    Without an interval the text is ``gap``, the reason, or a dash. The ratio of plain to itself, exactly 1, is ``1``.
    ``text`` prints a number.
    """
    interval = between(low, high, text)
    if not interval:
        return gap or NONE
    if value == 1:
        return "1"
    return f"{text(value)} {interval}" if is_decided(value, low, high) else f"undecided {interval}"


def meanings(texts: Iterable[str]) -> list[str]:
    """The meanings of the words in these quoted ratios, each once."""
    begins = {next((word for word in MEANINGS if word in text), "") for text in texts}
    return [meaning for word, meaning in MEANINGS.items() if word in begins]
