"""The trainings of a comparison: the check of the reference, then the block instead of it, depth by depth."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pandas as pd

from highway_bench.cell import Cell
from highway_bench.comparison.finals import SETTING, alike, label
from highway_bench.decide.candidate import TUNING_SEEDS, Candidate, Trainings, starts_of
from highway_bench.decide.part import Part
from highway_bench.plan.settings import FRESH_SEEDS

CHECK_SEEDS: Final = (0, 1, 2)


def instead_of(reference: Candidate, block: str) -> Candidate:
    """``block`` at its first start instead of ``reference``: same family, data, budget, recipe, depths and rates."""
    template = reference.template.but(block=block, start=None, width=reference.template.nominal_width)
    return starts_of(template, reference.depths, reference.first)[0]


def check_cells(reference: Candidate, committed: pd.DataFrame) -> list[Cell]:
    """Three seeds of the reference at the shallowest depth of the ``committed`` finals, at the rate chosen there; none
    if it was not committed."""
    columns = reference.template.columns()
    own = alike(committed, columns | {"block": label(columns)}, (*SETTING, "block"))
    depths = [depth for depth in reference.depths if depth in set(own["depth"])]
    if not depths:
        return []
    rate = float(own.loc[own["depth"] == depths[0], "rate"].iloc[0])
    return [reference.run(depths[0], rate, seed) for seed in CHECK_SEEDS]


def first_seconds(candidates: Sequence[Candidate], check: pd.DataFrame, workers: int) -> float:
    """The seconds that the first depth takes: each candidate tries its rates and trains fresh seeds, at the pace of the
    reference's steps in its family. ``check`` are the rows of the reference; 0 where they have no step times."""
    steps = check[check["metric"].eq("step_seconds") & check["value"].notna()]
    pace = (steps["value"].astype(float) / steps["depth"].astype(float)).groupby(steps["family"].astype(str)).median()
    first = min(depth for one in candidates for depth in one.depths)
    further = 2 * (len(TUNING_SEEDS) - 1) + FRESH_SEEDS  # at least: runs of the best two rates, and of the best one
    seconds = 0.0
    for one in candidates:
        if first in one.depths:
            steps_in_all = (len(one.first) + further) * one.template.recipe["steps"]
            seconds += steps_in_all * first * float(pace.get(one.template.family, 0.0))
    return seconds / workers


@dataclass(frozen=True)
class TimedPart(Part):
    """A part that begins a depth only if it will end before ``until``, a moment of ``time.monotonic``.

    A depth takes as long as it is deep: at the pace of the depth before, and no less than by ``first``, the predicted
    seconds of the first depth. Of cells, ``left`` gives the number that are still to be trained: what is stored takes
    no time. ``begun`` has the moments at which depths were begun.
    """

    until: float
    first: float = 0.0
    left: Callable[[Sequence[Cell]], int] = len
    begun: dict[int, float] = field(default_factory=dict)

    def pending(self, trainings: Trainings) -> list[Cell]:
        depth, cells = self.next_depth(trainings)
        return cells if cells and (depth in self.begun or not self.left(cells) or self.begin(depth)) else []

    def begin(self, depth: int) -> bool:
        """Begin a depth, unless it would end too late; return whether it is begun."""
        now = time.monotonic()
        last = max(self.begun, default=depth)
        pace = (now - self.begun[last]) / last if self.begun else 0.0
        shallowest = min(rung for one in self.candidates for rung in one.depths)
        if now + depth * max(pace, self.first / shallowest) > self.until:
            return False
        self.begun[depth] = now
        return True
