"""Equal seconds: how good a block is if it may train only as long as pre-norm.

A block whose step takes r times as long as pre-norm's trains ⌊N / r⌋ steps instead of N, under its own full schedule.
The ratio r comes from paired steps of the same shape; the clocks of training runs are not used. The blocks are the
leaders at equal steps, the best first, and the best one that is faster than pre-norm: at most ``MOST``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from highway_bench.cell import Cell
from highway_bench.decide.candidate import REFERENCE, Candidate, Trainings
from highway_bench.decide.language import DEEP, FINAL_SEEDS, LanguagePart, mean_size, rate_at, with_seeds
from highway_bench.decide.part import Part
from highway_bench.errors import BadInput
from highway_bench.measure.paired import leaders
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.plan.plan import RunResult
from highway_bench.tasks.from_cell import cell_family, positions_of

NARROW = 0.05  # the largest relative distance from the ratio to a bound of its interval
MOST = 3  # blocks in this comparison
TIMING = {"seconds": 1.0, "precision": 0.01, "processes": 5, "limit": 60}

Ratios = Mapping[str, IntervalEstimate]
"""By block: a step's time over that of pre-norm's."""


def timing_cells(part: LanguagePart, trainings: Trainings) -> dict[str, Cell]:
    """By block: the cell that times its step at the greater depth. All of them are timed in turn."""
    return {
        one.template.block: one.template.but(
            task="throughput",
            start=None,
            depth=DEEP,
            seq_len=positions_of(cell_family(one.template), one.template),
            phase="train-step",
            dataset=None,
            recipe=TIMING,
        )
        for one in part.better_starts(trainings)
    }


def step_ratios(result: RunResult, cells: Mapping[str, Cell]) -> Ratios:
    """The ratios of the blocks that were timed in the same rounds as the reference."""
    rows = result.rows[(result.rows["metric"] == "step_time") & (result.rows["axis"] == "")].set_index("digest")
    timed = {}
    for block, cell in cells.items():
        digest = result.summary.digests[cell]
        if digest in rows.index and isinstance(samples := rows.at[digest, "samples"], str):  # null if it failed
            timed[block] = json.loads(samples), json.loads(str(rows.at[digest, "paired"]))
    if REFERENCE not in timed:
        raise BadInput(f"the step of {REFERENCE} was not timed, so no other block has a ratio to it")
    base, rounds = timed[REFERENCE]
    return {
        block: ratio_over_processes(seconds, base, paired["process"], wall=paired["wall"])
        for block, (seconds, paired) in timed.items()
        if block != REFERENCE and paired["plain"] == rounds["plain"]
    }


def is_narrow(ratio: IntervalEstimate) -> bool:
    """Whether the ratio is known to ± ``NARROW``."""
    return max(ratio.high / ratio.value, ratio.value / ratio.low) <= 1 + NARROW


def equal_seconds(part: LanguagePart, trainings: Trainings, ratios: Ratios) -> EqualSeconds:
    """The leaders at the greater depth and the best further block that is faster than pre-norm, each with the steps
    that its ratio allows.

    Raises ``BadInput`` where every finalist diverged, and where the ratio of a block to compare is not known to
    ± ``NARROW``.
    """
    finalists = {one.template.block: one for one in part.finalists(DEEP, trainings)}
    losses = {block: final_losses(one, trainings) for block, one in finalists.items()}
    complete = {block: by_seed for block, by_seed in losses.items() if len(by_seed) == FINAL_SEEDS[DEEP]}
    if not complete:
        raise BadInput(f"every finalist at {DEEP} layers diverged at a seed, so none can be compared in equal seconds")
    chosen = [block for block in leaders(complete) if block != REFERENCE]
    ranked = sorted(part.better_starts(trainings), key=lambda one: mean_size(one, DEEP, trainings))
    faster = [one.template.block for one in ranked if one.template.block in ratios]
    faster = [block for block in faster if ratios[block].high < 1 and block not in chosen[: MOST - 1]][:1]
    by_block = {one.template.block: one for one in ranked}
    candidates = []
    for block in [*chosen[: MOST - len(faster)], *faster]:
        if block not in ratios:
            raise BadInput(
                f"the step of {block} was not timed in turn with that of {REFERENCE}: there is no ratio, and so no "
                "number of steps in equal seconds"
            )
        if not is_narrow(ratios[block]):
            raise BadInput(
                f"the step ratio of {block} is {ratios[block]}, not known to ± {100 * NARROW:g} %: time it on an idle "
                "machine"
            )
        one = by_block[block]
        rate = counted(one, trainings)[0].recipe["rate"] if block in finalists else rate_at(one, DEEP, trainings)
        candidates.append(with_steps(one, ratios[block].value, rate))
    return EqualSeconds("seconds", tuple(candidates))


def final_losses(candidate: Candidate, trainings: Trainings) -> dict[int, float]:
    """By seed: the final loss of the fresh seeds at the greater depth that did not diverge."""
    ends = {cell.seed: trainings[cell].loss for cell in counted(candidate, trainings)}
    return {seed: loss for seed, loss in ends.items() if loss is not None and math.isfinite(loss)}


def counted(candidate: Candidate, trainings: Trainings) -> list[Cell]:
    """The cells of the fresh seeds at the greater depth that count."""
    return with_seeds(candidate, DEEP).counted(DEEP, trainings, rate_at(candidate, DEEP, trainings))


def with_steps(candidate: Candidate, ratio: float, rate: float) -> Candidate:
    """The candidate with its share of the steps, at its chosen rate."""
    recipe = candidate.template.recipe
    template = candidate.template.but(recipe={**recipe, "steps": math.floor(recipe["steps"] / ratio)})
    return replace(candidate, template=template, depths=(DEEP,), first=(rate,))


@dataclass(frozen=True)
class EqualSeconds(Part):
    """Blocks that train as long as pre-norm, with the fresh seeds of the language part."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        return [
            cell
            for one in self.candidates
            for seed in range(FINAL_SEEDS[DEEP])
            if (cell := one.run(DEEP, one.first[0], seed)) not in trainings
        ]
