"""Numbers as text: three significant digits and a unit. Only print rounds; the store has every digit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

PREFIXES: Final = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)
NONE: Final = "–"


def three(value: float | None) -> str:
    """``value`` to three significant digits: 1.83, 12,300, 0.00123, 4.10e-07; a dash for None and NaN.

    Use ``count`` for exact whole numbers.
    """
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    rounded = round(value, 2 - exponent)
    exponent = math.floor(math.log10(abs(rounded)))  # 9.999 rounds to 10.0
    if exponent >= 6 or exponent < -4:
        return f"{'−' if rounded < 0 else ''}{abs(rounded):.2e}"
    return f"{rounded:,.{max(0, 2 - exponent)}f}".replace("-", "−")


def count(value: float | None) -> str:
    """A whole number with all its digits and thousands separators."""
    return NONE if value is None or math.isnan(value) else f"{round(value):,}"


def counted(value: float, what: str) -> str:
    """A number with its noun: 1 seed, 12 seeds."""
    return f"{count(value)} {what}{'' if value == 1 else 's'}"


def quantity(value: float | None, unit: str) -> str:
    """``value`` with its unit and an SI prefix: 3.21 ms, 1.02 MB, 12.3 ksample/s.

    Prefixes below one are for seconds only. Pure numbers (unit ``1``), nats and steps get no prefix.
    """
    if value is None or math.isnan(value):
        return NONE
    if unit in ("1", ""):
        return three(value)
    if unit in ("nat", "step") or value == 0 or math.isinf(value):
        return f"{three(value)} {unit}"
    for scale, prefix in PREFIXES:
        if (unit == "s" and scale > 1) or (unit != "s" and scale < 1):
            continue
        if abs(float(f"{value:.2e}")) >= scale:
            return f"{three(value / scale)} {prefix}{unit}"
    return f"{three(value)} {unit}"


def between(low: float | None, high: float | None, text: Callable[[float], str] = three) -> str:
    """An interval: [1.80, 1.86]; empty if a bound is missing."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{text(low)}, {text(high)}]"


def estimate(value: float, low: float | None, high: float | None) -> str:
    """A positive value and its interval; > 1.80 or < 1.86 where that is open."""
    if high == math.inf or low == 0:
        return f"> {three(low)}" if low else f"< {three(high)}"
    return f"{three(value)} {between(low, high)}".strip()


def signed(value: float, form: str = "g") -> str:
    """``value`` in a format of ``str.format``, with a minus sign instead of a hyphen: −2."""
    return f"{value:{form}}".replace("-", "−")


def listed(words: list[str]) -> str:
    """Words in a list for a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"
