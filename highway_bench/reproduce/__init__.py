"""Published results, measured again: one a file."""

from highway_bench.reproduce.base import (
    Asked,
    Evidence,
    Finding,
    NotAttempted,
    Outcome,
    Reproduction,
    Verdict,
    register_reproduction,
    reproductions,
)

__all__ = [
    "Asked",
    "Evidence",
    "Finding",
    "NotAttempted",
    "Outcome",
    "Reproduction",
    "Verdict",
    "register_reproduction",
    "reproductions",
]
