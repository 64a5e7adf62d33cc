"""The language part: connections in a causal transformer that predicts the next byte of film reviews.

The rates are tuned at 6 layers, at every start with one seed a rate, and at the better start of each block with three.
Pre-norm and the five best blocks then train with fresh seeds, at this width and at twice this width. At 24 layers, the
better starts train at their rate and at the next lower one, and again pre-norm and the five best with fresh seeds.

Equal seconds say how good a block is if it may train only as long as pre-norm. A block whose step takes r times as long
as pre-norm's trains ⌊N / r⌋ steps instead of N, under its own full schedule. The ratio r comes from paired steps of the
same shape; the clocks of training runs are not used. The blocks are the leaders at equal steps, the best first, and the
best one that is faster than pre-norm: at most ``MOST``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.measure.paired import leaders
from highway_bench.measure.statistics import IntervalEstimate, ratio_over_processes
from highway_bench.plan.expand import matched
from highway_bench.plan.plan import RunResult
from highway_bench.plan.settings import LANGUAGE
from highway_bench.studies.decide.candidate import REFERENCE, TUNING_SEEDS, Candidate, Trainings, around, starts_of
from highway_bench.studies.decide.part import Protocol
from highway_bench.success.rates import size
from highway_bench.tasks.from_cell import cell_family, positions_of

BLOCKS = (  # those of the committed rows: a block that is registered later is not among them
    "attn-residual",
    "branch-scaled",
    "deepnorm",
    "dense-average",
    "gru-gate",
    "hc-dynamic",
    "highway",
    "highway-free",
    "keel",
    "laurel-lr",
    "layerscale",
    "mhc",
    "norm-scaled",
    "output-norm",
    "parallel",
    "plain",
    "post-norm",
    "pre-norm",
    "residual",
    "rezero",
    "sandwich-norm",
    "x0-mix",
)
LEADERS = 5  # that are compared with the reference
WIDTH, WIDER = LANGUAGE.width, 2 * LANGUAGE.width
SHALLOW, DEEP = 6, 24
FINAL_SEEDS = {SHALLOW: 10, DEEP: 5}
WIDER_SEEDS = 3
NARROW = 0.05  # the largest relative distance from the ratio to a bound of its interval
MOST = 3  # blocks in this comparison
TIMING = {"seconds": 1.0, "precision": 0.01, "processes": 5, "limit": 60}
Ratios = Mapping[str, IntervalEstimate]
"""By block: a step's time over that of pre-norm's."""


def language() -> LanguageProtocol:
    """Every block of ``BLOCKS`` at each of its starts."""
    every = (starts_of(LANGUAGE.cell(block), (SHALLOW, DEEP), LANGUAGE.first) for block in BLOCKS)
    return LanguageProtocol("language", tuple(one for starts in every for one in starts))


@dataclass(frozen=True)
class LanguageProtocol(Protocol):
    """The candidates of one family, of which only the best go on."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        at = {depth: partial(self.finals, depth) for depth in (SHALLOW, DEEP)}
        stages = (self.first_tries, self.more_tries, at[SHALLOW], self.wider_runs, self.deep_tries, at[DEEP])
        missing = ([cell for cell in stage(trainings) if cell not in trainings] for stage in stages)
        return next(filter(None, missing), [])

    def first_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """One seed a rate, at every start, until the best rate is inside."""
        for candidate in self.candidates:
            yield from candidate.tries(SHALLOW, candidate.first, trainings, TUNING_SEEDS[:1])

    def more_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """The seeds that choose the rate, at the better starts."""
        for candidate in self.better_starts(trainings):
            yield from candidate.tries(SHALLOW, candidate.first, trainings)

    def wider_runs(self, trainings: Trainings) -> Iterator[Cell]:
        """The same finalists at the greater width."""
        for candidate in self.finalists(SHALLOW, trainings):
            rate = rate_at(candidate, SHALLOW, trainings)
            yield from (wider(candidate).run(SHALLOW, rate, seed) for seed in range(WIDER_SEEDS))

    def deep_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """The better starts at the greater depth."""
        for candidate in self.better_starts(trainings):
            yield from (candidate.run(DEEP, rate, TUNING_SEEDS[0]) for rate in deep_rates(candidate, trainings))

    def finals(self, depth: int, trainings: Trainings) -> Iterator[Cell]:
        """The fresh seeds of the finalists of a depth."""
        for candidate in self.finalists(depth, trainings):
            yield from with_seeds(candidate, depth).finals(depth, trainings, rate_at(candidate, depth, trainings))

    def finalists(self, depth: int, trainings: Trainings) -> list[Candidate]:
        """The reference and the other blocks of lowest loss at ``depth``."""
        ranked = sorted(self.better_starts(trainings), key=lambda one: mean_size(one, depth, trainings))
        reference = [one for one in ranked if one.template.block == REFERENCE]
        return reference + [one for one in ranked if one.template.block != REFERENCE][:LEADERS]


def with_seeds(candidate: Candidate, depth: int) -> Candidate:
    """The candidate with the fresh seeds of a depth."""
    return replace(candidate, fresh=range(FINAL_SEEDS[depth]), more=())


def deep_rates(candidate: Candidate, trainings: Trainings) -> Sequence[float]:
    """The rates at the greater depth: the choice at the smaller one, and the next lower rate."""
    rate = candidate.rate(SHALLOW, trainings)
    return [one for one in around(rate) if one <= rate]


def rate_at(candidate: Candidate, depth: int, trainings: Trainings) -> float:
    """The chosen learning rate at a depth."""
    if depth == SHALLOW:
        return candidate.rate(SHALLOW, trainings)
    losses = candidate.losses(depth, trainings)
    return min(deep_rates(candidate, trainings), key=lambda rate: (size(losses[rate, TUNING_SEEDS[0]]), rate))


def mean_size(candidate: Candidate, depth: int, trainings: Trainings) -> float:
    """The mean logarithm of the losses of the tuning runs at the chosen rate."""
    rate = rate_at(candidate, depth, trainings)
    sizes = [size(loss) for (tried, _), loss in candidate.losses(depth, trainings).items() if tried == rate]
    return sum(sizes) / len(sizes)


def wider(candidate: Candidate) -> Candidate:
    """The candidate at twice the width."""
    return replace(candidate, template=matched(candidate.template.but(nominal_width=WIDER)))


def timing_cells(part: LanguageProtocol, trainings: Trainings) -> dict[str, Cell]:
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


def equal_seconds(part: LanguageProtocol, trainings: Trainings, ratios: Ratios) -> EqualSeconds:
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
class EqualSeconds(Protocol):
    """Blocks that train as long as pre-norm, with the fresh seeds of the language part."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        runs = (one.run(DEEP, one.first[0], seed) for one in self.candidates for seed in range(FINAL_SEEDS[DEEP]))
        return [cell for cell in runs if cell not in trainings]
