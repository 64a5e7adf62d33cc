"""Numbers as they are read: three significant digits and a unit. The store keeps every digit; only print rounds."""

from __future__ import annotations

import math
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
    """``value`` to three significant digits: 1.83, 12,300, 0.00123, 4.1e-07; a dash where there is none.

    Integers below a thousand million that are exact, such as counts, are for ``count``.
    """
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    place = math.floor(math.log10(abs(value)))
    rounded = round(value, 2 - place)
    place = math.floor(math.log10(abs(rounded)))  # 9.999 rounds to 10.0
    if place >= 6 or place < -4:
        return f"{rounded:.2e}"
    return f"{rounded:,.{max(0, 2 - place)}f}".replace("-", "−")


def count(value: float | None) -> str:
    """A whole number in full, with thousands set apart."""
    return NONE if value is None or math.isnan(value) else f"{round(value):,}"


def counted(value: float, what: str) -> str:
    """A number of things: 1 seed, 12 seeds."""
    return f"{count(value)} {what}{'' if value == 1 else 's'}"


def quantity(value: float | None, unit: str) -> str:
    """``value`` in its unit with the prefix that suits it: 3.21 ms, 1.02 MB, 12.3 ksample/s.

    Only seconds go below one; shares and plain ratios (unit ``1``) and nats are written without a prefix.
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


def between(low: float | None, high: float | None) -> str:
    """An interval: [1.80, 1.86]; empty where an end is missing."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{three(low)}, {three(high)}]"


def times(value: float | None) -> str:
    """An exact ratio, or one whose interval follows: 1.83×."""
    return NONE if value is None or math.isnan(value) else f"{three(value)}×"


def listed(words: list[str]) -> str:
    """Words as a sentence lists them: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"
