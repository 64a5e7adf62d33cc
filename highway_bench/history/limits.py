"""Limits that the command line's help gives: apart from the modules that apply them, which take long to import."""

from __future__ import annotations

WINDOW = 10  # measured commits of a machine that count as recent
MOST_PAIRS = 24  # of processes, after which a comparison ends
