"""Texts of a run's progress: its plan, its remaining time and its durations, for the bar, the log and ``status``."""

from __future__ import annotations

from highway_bench.execution.progress import Opened


def planned(event: Opened) -> str:
    """The run's cells and estimated time, in one line."""
    others = f" ({event.other_sources} by other sources: --strict-source measures them again)"
    stored = f"{event.stored} in the store already{others if event.other_sources else ''}"
    resumed = f", {event.resumed} to resume from a checkpoint" if event.resumed else ""
    return f"{counted(event.cells)}, {stored}{resumed}, {time_left(event.left)}"


def counted(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def time_left(seconds: float) -> str:
    """The remaining time, as an estimate."""
    return f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Seconds, minutes, or hours and minutes: 45 s, 12 min, 3 h 20 min.

    >>> duration(754)
    '13 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 90:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
