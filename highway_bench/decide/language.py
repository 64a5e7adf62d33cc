"""The language part: connections in a causal transformer that predicts the next byte of film reviews.

The rates are tuned at 6 layers, at every start with one seed a rate, and at the better start of each block with three.
Pre-norm and the five best blocks then train with fresh seeds, at this width and at twice this width. At 24 layers, the
better starts train at their rate and at the next lower one, and again pre-norm and the five best with fresh seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from highway_bench.cell import Cell
from highway_bench.decide.candidate import REFERENCE, TUNING_SEEDS, Candidate, Trainings, starts_of
from highway_bench.decide.part import Part
from highway_bench.decide.rates import around
from highway_bench.plan.matched import matched
from highway_bench.plan.settings import LANGUAGE
from highway_bench.success.rates import size

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


def language() -> LanguagePart:
    """Every block of ``BLOCKS`` at each of its starts."""
    every = (starts_of(LANGUAGE.cell(block), (SHALLOW, DEEP), LANGUAGE.first) for block in BLOCKS)
    return LanguagePart("language", tuple(one for starts in every for one in starts))


@dataclass(frozen=True)
class LanguagePart(Part):
    """The candidates of one family, of which only the best go on."""

    def pending(self, trainings: Trainings) -> list[Cell]:
        stages = (self.first_tries, self.more_tries, self.final_runs, self.wider_runs, self.deep_tries, self.deep_runs)
        for stage in stages:
            if missing := [cell for cell in stage(trainings) if cell not in trainings]:
                return missing
        return []

    def first_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """One seed a rate, at every start, until the best rate is inside."""
        for candidate in self.candidates:
            yield from candidate.tries(SHALLOW, candidate.first, trainings, TUNING_SEEDS[:1])

    def more_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """The seeds that choose the rate, at the better starts."""
        for candidate in self.better_starts(trainings):
            yield from candidate.tries(SHALLOW, candidate.first, trainings)

    def final_runs(self, trainings: Trainings) -> Iterator[Cell]:
        """The fresh seeds of the finalists at the smaller depth."""
        return self.finals(SHALLOW, trainings)

    def wider_runs(self, trainings: Trainings) -> Iterator[Cell]:
        """The same finalists at the greater width."""
        for candidate in self.finalists(SHALLOW, trainings):
            rate = rate_at(candidate, SHALLOW, trainings)
            yield from (wider(candidate).run(SHALLOW, rate, seed) for seed in range(WIDER_SEEDS))

    def deep_tries(self, trainings: Trainings) -> Iterator[Cell]:
        """The better starts at the greater depth."""
        for candidate in self.better_starts(trainings):
            yield from (candidate.run(DEEP, rate, TUNING_SEEDS[0]) for rate in deep_rates(candidate, trainings))

    def deep_runs(self, trainings: Trainings) -> Iterator[Cell]:
        """The fresh seeds of the finalists at the greater depth."""
        return self.finals(DEEP, trainings)

    def finals(self, depth: int, trainings: Trainings) -> Iterator[Cell]:
        """The fresh seeds of the finalists of a depth."""
        for candidate in self.finalists(depth, trainings):
            yield from with_seeds(candidate, depth).finals(depth, trainings, rate_at(candidate, depth, trainings))

    def better_starts(self, trainings: Trainings) -> list[Candidate]:
        """Of each block, the start of the lowest loss with one seed; the published one among equals."""
        by_block = groupby(self.candidates, key=lambda candidate: candidate.template.block)
        return [min(starts, key=lambda one: one.lowest(SHALLOW, trainings)) for _, starts in by_block]

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
