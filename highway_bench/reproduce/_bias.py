"""A gate bias as it is read."""

from __future__ import annotations


def signed(bias: float) -> str:
    """With a minus sign and no hyphen: −2."""
    return f"{bias:g}".replace("-", "−")
