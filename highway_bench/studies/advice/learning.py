"""Learning: whether a connection trains, in one word, from its longest runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

LEARNT: Final = 0.1
"""A connection learns if its mean final loss is at least this share below that of the best constant prediction."""


class Learning(StrEnum):
    """Whether a connection trains."""

    TRAINS = "trains"
    LEARNS = "learns"
    UNSTABLE = "unstable"
    STALLS = "does not learn"
    DIVERGES = "diverges"
    FAILED = "failed"
    LEFT_OUT = "left out"


_BELOW = f"{100 * LEARNT:g} % below that of the best constant prediction"

EXPLAINED: Final = {
    Learning.TRAINS: "every one of its longest runs reached the success threshold of the data",
    Learning.LEARNS: f"the mean loss of its longest runs fell at least {_BELOW}; not every run reached the threshold",
    Learning.UNSTABLE: "in its longest runs the loss of some seeds, not of all, stopped being finite",
    Learning.STALLS: f"the mean loss of its longest runs did not fall {_BELOW}",
    Learning.DIVERGES: "in its longest runs the loss of every seed stopped being finite",
    Learning.FAILED: "a run ended with an error",
    Learning.LEFT_OUT: "not trained, for the reason given",
}


def learning_of(losses: Sequence[float | None], succeeded: int, chance: float) -> Learning:
    """The word for the final ``losses`` of a connection's longest runs, of which so many ``succeeded``.

    ``chance`` is the loss of the best constant prediction, above 0.
    """
    finite = [loss for loss in losses if loss is not None]
    if not finite:
        return Learning.DIVERGES
    if len(finite) < len(losses):
        return Learning.UNSTABLE
    if succeeded == len(losses):
        return Learning.TRAINS
    learnt = math.fsum(finite) / len(finite) <= (1 - LEARNT) * chance
    return Learning.LEARNS if learnt else Learning.STALLS
