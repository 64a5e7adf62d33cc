"""Evidence: the parts that train longer, on more data and with batch norms. Each fits its limit of core-hours.

The settings were written before any of these parts was run. In a ranked part each block has its better start, the best
have more seeds, and the reference has whole schedules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from typing import Any

from highway_bench.cell import Cell
from highway_bench.plan import settings
from highway_bench.plan.grid import TRAINED
from highway_bench.plan.settings import ADAMW, CONV, FIRST_ADAMW_RATES, FIRST_SGD_RATES, FRESH_SEEDS, LANGUAGE, Setting
from highway_bench.studies.decide import language
from highway_bench.studies.decide.candidate import LONGER, REFERENCE, TUNING_SEEDS, Candidate, Trainings, starts_of
from highway_bench.studies.decide.part import Protocol
from highway_bench.success.rates import size
from highway_bench.tasks.from_cell import pinned

SCHEDULES = (0.25, 0.5, 1, 2, 4)
"""Times the steps of the reference's whole schedules."""
RUNG_SEEDS = 3
TUNED_SCHEDULES = (0.25, 4)
"""Those with learning rates of their own; the others have that of the part."""
TEXT = (REFERENCE, "residual", "highway-free", "branch-scaled", "layerscale", "deepnorm")
NEW = (REFERENCE, "gated-residual", "value-residual", "layer-scalar")
DEEP = (REFERENCE, "residual", "deepnorm", "dense-average", "hc-dynamic", "parallel", "highway", "highway-free")
NORMED = (REFERENCE, "plain", "residual", "residual-relu", "highway", "post-norm", "rezero", "deepnorm")
DENSE = (REFERENCE, "plain", "highway", "residual", "rezero", "deepnorm")
RESNET_STEPS, TEXT_STEPS, LONG_STEPS, MNIST_STEPS = 1_200, 1_500, 6_000, 3_000
ONE_SEED = TUNING_SEEDS[:1]


@dataclass(frozen=True)
class RankedProtocol(Protocol):
    """At the first depth every start of a block is tried with one seed a rate; the start of the lowest loss goes on.

    At each depth, the ``leaders`` blocks of the lowest losses get ``leader_seeds`` seeds. The reference's schedules of
    ``rungs`` times ``rung_steps`` train at ``rung_depth`` with three seeds.
    """

    leaders: int = 0
    leader_seeds: int = 0
    rungs: Sequence[float] = ()
    rung_steps: int = 0
    rung_depth: int = 0

    def pending(self, trainings: Trainings) -> list[Cell]:
        tries = (one.tries(one.depths[0], one.first, trainings, TUNING_SEEDS[:1]) for one in self.candidates)
        if first := list(chain.from_iterable(tries)):
            return first
        better = Protocol(self.name, tuple(self.better_starts(trainings)))
        if cells := better.pending(trainings):
            return cells
        stages = (self.more_seeds(better.candidates, trainings), self.schedules(better.candidates, trainings))
        return next((cells for cells in map(list, stages) if cells), [])

    def more_seeds(self, candidates: Sequence[Candidate], trainings: Trainings) -> Iterator[Cell]:
        """The further seeds of the leaders at each depth that they reach."""
        for depth in sorted({depth for one in candidates for depth in one.depths}) if self.leaders else ():
            here = [one for one in candidates if depth in (rung for rung, _ in one.rungs(trainings))]
            ranked = sorted(here, key=lambda one: mean_size(one.counted(depth, trainings), trainings))
            for one in ranked[: self.leaders]:
                seeded = replace(one, fresh=range(self.leader_seeds))
                yield from (cell for cell in seeded.finals(depth, trainings) if cell not in trainings)

    def schedules(self, candidates: Sequence[Candidate], trainings: Trainings) -> Iterator[Cell]:
        """The runs of the reference's schedules, which give no verdict."""
        for rung in self.rungs:
            reference = next(one for one in candidates if one.template.block == REFERENCE)
            one = replace(scheduled(reference, round(rung * self.rung_steps)), fresh=range(RUNG_SEEDS), more=())
            one = replace(one, depths=(self.rung_depth,), longer=1)
            if rung in TUNED_SCHEDULES:
                yield from one.pending(trainings)
            else:
                rate = reference.rate(self.rung_depth, trainings)
                runs = (one.run(self.rung_depth, rate, seed) for seed in one.fresh)
                yield from (cell for cell in runs if cell not in trainings)


def scheduled(candidate: Candidate, steps: int) -> Candidate:
    """The candidate with the same schedule over other ``steps``; where they differ, its runs give no verdict."""
    recipe = candidate.template.recipe
    if steps == recipe["steps"]:
        return candidate
    words = {"steps": steps, "verdict": False}
    words |= {"warm_up": round(recipe["warm_up"] * steps / recipe["steps"])} if "warm_up" in recipe else {}
    return replace(candidate, template=candidate.template.but(recipe={**recipe, **words}))


def mean_size(cells: Sequence[Cell], trainings: Trainings) -> float:
    """The mean logarithm of the losses of ``cells``."""
    return fmean(size(trainings[cell].loss) for cell in cells)


def equal_width() -> Protocol:
    """Highway of vision in conv at plain's width, as it has in conv-pair; at equal parameters it has 11 features.

    It ends at 10 layers: lower rates, longer runs and this part share five core-hours.
    """
    cell = CONV.cell("highway").but(match="width")
    return Protocol("equal-width", tuple(starts_of(cell, (5, 10), CONV.first, longer=LONGER)))


def resnet() -> RankedProtocol:
    """Residual blocks with batch norms on digits: 8 core-hours. At 10 pairs, pre-norm's whole schedules too."""
    recipe = {**ADAMW, "warm_up": 100, "steps": RESNET_STEPS, "dataset": {"pooled": 2}}
    cell = trained(family="resnet", width=16, batch_size=32, dataset="mnist-5k", recipe=recipe)
    return RankedProtocol(
        "resnet",
        candidates(cell, NORMED, (5, 10, 20), CONV.first),
        leaders=3,
        leader_seeds=10,
        rungs=[rung for rung in SCHEDULES if rung != 1],
        rung_steps=RESNET_STEPS,
        rung_depth=10,
    )


def long() -> RankedProtocol:
    """Language at 6 layers and four times the steps: 8 core-hours. Pre-norm's shorter schedules too, from 375 steps."""
    cell = text("language", steps=LONG_STEPS)
    return RankedProtocol(
        "long",
        candidates(cell, TEXT, (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED),
        rungs=[rung for rung in SCHEDULES if rung < max(SCHEDULES)],
        rung_steps=TEXT_STEPS,
        rung_depth=language.SHALLOW,
    )


def code() -> RankedProtocol:
    """The standard library of Python at 6 layers: 3 core-hours."""
    return RankedProtocol(
        "code", candidates(text("code"), TEXT, (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED)
    )


def new() -> RankedProtocol:
    """The connections of 2026-11-29 on language at 6 layers: 3 core-hours."""
    return RankedProtocol("new", candidates(text("language"), NEW, (language.SHALLOW,), FIRST_ADAMW_RATES))


def deep() -> RankedProtocol:
    """Language at 24 layers with every best rate inside of those tried: 5 core-hours."""
    rates = (0.003, 0.001, 0.0003)
    return RankedProtocol("deep", candidates(text("language"), DEEP, (language.DEEP,), rates, tuning=ONE_SEED))


def mnist() -> RankedProtocol:
    """Dense layers on all of MNIST, by SGD at three depths and by AdamW at two: 3 core-hours."""
    sgd = {**settings.DENSE.recipe, "steps": MNIST_STEPS}
    adamw = {
        **ADAMW,
        "warm_up": 100,
        "steps": settings.DENSE.recipe["steps"],
        "together": settings.DENSE.recipe["together"],
    }
    width = TRAINED.widths["vector"]
    whole = trained(family="dense", width=width, batch_size=100, dataset="mnist", recipe=sgd)
    small = trained(family="dense", width=width, batch_size=100, dataset="mnist-5k", recipe=adamw)
    by_sgd = candidates(whole, DENSE, (20, 50, 100), FIRST_SGD_RATES)
    by_adamw = candidates(small, DENSE, (20, 100), FIRST_ADAMW_RATES)
    return RankedProtocol("mnist", (*by_sgd, *by_adamw))


def wide() -> RankedProtocol:
    """Language at 6 layers of width 128 with learning rates of their own: 4 core-hours."""
    cell = text("language", width=language.WIDER)
    return RankedProtocol(
        "wide",
        candidates(cell, TEXT[:5], (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED, fresh=range(3)),
    )


def text(dataset: str, *, width: int = LANGUAGE.width, steps: int = TEXT_STEPS) -> Cell:
    """The cell of a causal transformer on text, with the recipe of the part ``language``."""
    warm_up = LANGUAGE.recipe["warm_up"] * steps // LANGUAGE.recipe["steps"]
    recipe = {**LANGUAGE.recipe, "steps": steps, "warm_up": warm_up}
    cell = trained(family="transformer", width=width, batch_size=LANGUAGE.batch_size, dataset=dataset, recipe=recipe)
    return pinned(cell.but(family_options={"causal": True}))


def trained(**words: Any) -> Cell:
    """A training of the reference; ``words`` are fields of ``Setting``."""
    return Setting(first=(), **words).cell(REFERENCE)


def candidates(
    cell: Cell, names: Sequence[str], depths: Sequence[int], first: Sequence[float], **words: Any
) -> tuple[Candidate, ...]:
    """Each named block at each of its starts, with five fresh seeds unless ``words``, fields of ``Candidate``, say
    otherwise."""
    fields = {"fresh": range(FRESH_SEEDS), "more": (), "longer": LONGER if cell.dataset == "mnist-5k" else 1, **words}
    return tuple(chain.from_iterable(starts_of(cell.but(block=name), depths, first, **fields) for name in names))
