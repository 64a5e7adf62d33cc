"""Rates: which learning rates a candidate tries, and with which seeds, until one is chosen.

Three rates are tried with one seed. While the best of them is the lowest or the highest, its neighbour is tried too.
The best two get more seeds, and the best on average is chosen. Where that is the lowest or the highest, its neighbour
gets all seeds too, and so on: the chosen rate ends inside of the tried ones, or at the end of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from highway_bench.success.rates import GRID, LossByRun, chosen_rate, size


class Try(NamedTuple):
    """A run to make: its learning rate and its seed."""

    rate: float
    seed: int


def around(rate: float) -> tuple[float, ...]:
    """``rate`` and its neighbours on the grid."""
    index = GRID.index(rate)
    return GRID[max(0, index - 1) : index + 2]


def next_tries(losses: LossByRun, first: Sequence[float], seeds: Sequence[int]) -> list[Try]:
    """The runs to make next, or none where a rate can be chosen.

    ``first`` are the rates to begin with. Of ``seeds``, every tried rate has the first one; the best two, and those
    beyond a choice at the edge, have all.
    """
    tried = sorted({rate for rate, _ in losses} | set(first), key=GRID.index)
    if missing := [Try(rate, seeds[0]) for rate in tried if (rate, seeds[0]) not in losses]:
        return missing
    ranked = sorted(tried, key=lambda rate: (size(losses[rate, seeds[0]]), rate))
    if (wider := beyond(ranked[0], tried)) is not None:
        return [Try(wider, seeds[0])]
    if missing := [Try(rate, seed) for rate in ranked[:2] for seed in seeds[1:] if (rate, seed) not in losses]:
        return missing
    wider = beyond(chosen_rate(losses, seeds), tried)
    return [] if wider is None else [Try(wider, seed) for seed in seeds]


def beyond(best: float, tried: Sequence[float]) -> float | None:
    """The next rate of the grid where ``best`` is at an end of the ``tried`` ones; ``None`` where it is inside, or at
    the end of the grid."""
    index = GRID.index(best)
    if best == tried[0] and index > 0:
        return GRID[index - 1]
    if best == tried[-1] and index + 1 < len(GRID):
        return GRID[index + 1]
    return None
