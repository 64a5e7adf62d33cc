"""Gate biases as text."""

from __future__ import annotations


def signed(bias: float) -> str:
    """``bias`` with a minus sign instead of a hyphen: −2."""
    return f"{bias:g}".replace("-", "−")
