"""Grids: cells of one task as the product of the values of their coordinates, and functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from highway_bench.blocks import BlockGroup
from highway_bench.cell import Match, Mode, Phase
from highway_bench.families import FamilySpec, Kind, families
from highway_bench.results.schema import OUTCOMES, Status
from highway_bench.success.judging import THRESHOLD


@dataclass(frozen=True)
class Sizes:
    """Plain's width and the batch size, by the kind of a family. Other blocks' widths are multiples of ``snap``."""

    widths: Mapping[Kind, int]
    batches: Mapping[Kind, int]
    snap: int = 1


# Kernels of odd sizes are slower than those of round sizes nearby, so timed widths snap. A GPU is busy only at larger
# widths. Its fused attention takes heads of a multiple of 8 features in half precision; sequences are so wide on a GPU
# that every block of equal budget has such heads.
TIMED = Sizes({"vector": 128, "image": 32, "sequence": 64}, {"vector": 128, "image": 8, "sequence": 16}, snap=8)
TIMED_GPU = Sizes(
    {"vector": 1024, "image": 128, "sequence": 1024}, {"vector": 1024, "image": 64, "sequence": 64}, snap=64
)
SMALL = Sizes({"vector": 32, "image": 8, "sequence": 16}, {"vector": 16, "image": 2, "sequence": 2}, snap=8)
TRAINED = Sizes({"vector": 71, "image": 16, "sequence": 64}, {"vector": 100, "image": 100, "sequence": 100})
PROBED = Sizes({"vector": 71, "image": 8, "sequence": 32}, {"vector": 64, "image": 4, "sequence": 4})
CURVED = Sizes({"vector": 64, "image": 8, "sequence": 32}, {"vector": 64, "image": 32, "sequence": 32})

# Gated stacks of hundreds of layers need higher rates than those of tens; deep plain ones need lower rates.
SGD_RATES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
ADAM_RATES = (0.03, 0.01, 0.003, 0.001, 0.0003)


TUNED = "tuned"  # the rate in a recipe that is chosen by trials of its ``rates``

MEASURED: tuple[BlockGroup, ...] = ("core", "own")  # the groups of blocks that a grid has by default
MODERN: tuple[BlockGroup, ...] = (*MEASURED, "modern")

FamilyRule = Callable[[FamilySpec], bool]
"""Selects families by their properties, so that a new family is included automatically."""


def other_than(*names: str) -> FamilyRule:
    """All families but these."""
    return lambda family: family.name not in names


SHORT_RUNS = other_than("dense", "dense-pair")
"""The families that get short runs: all but the two that every profile's ladders were made for."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Cells of one task: the product of the listed values over every block of ``blocks``.

    Of ``blocks``, those of ``groups`` are meant, and those that are named in full. ``starts`` are the starts at which
    each block is measured. A block that has none of them, or a grid without ``starts``, is measured at the block's
    first. They count for tasks whose cells have a start.

    ``families`` are names with wildcards, or a rule that decides for each registered family. ``on_cpu`` and ``on_gpu``
    are the sizes on each device; without ``on_gpu``, a GPU has those of ``on_cpu``. ``gpu_modes`` are further modes on
    a GPU. ``threads`` counts for tasks that run alone; ``None`` is one per core, on a CPU
    alone. ``statuses`` are the expected statuses of these cells, apart from ``ok``.

    A grid that ``repeats`` trains each connection at its committed learning rate, and none that has no such rate. Where
    nothing is committed, and for users' blocks and layers, it is as any other grid of ``MEASURED`` blocks. One with
    ``users_only`` trains users' layers of its families' kind, and none of the registered ones.
    """

    task: str
    families: Sequence[str] | FamilyRule = ("*",)
    family_options: Mapping[str, Any] = field(default_factory=dict)
    blocks: Sequence[str] = ("*",)
    groups: Sequence[BlockGroup] = MEASURED
    starts: Sequence[str] = ()
    depths: Sequence[int] = (4,)
    on_cpu: Sizes = TIMED
    on_gpu: Sizes | None = None
    seq_lens: Sequence[int | None] = (None,)
    phases: Sequence[Phase | None] = (None,)
    dtypes: Sequence[str] = ("float32",)
    modes: Sequence[Mode] = ("eager",)
    gpu_modes: Sequence[Mode] = ()
    seeds: Sequence[int] = (0,)
    threads: int | None = 1
    match: Match = "params"
    dataset: str | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    statuses: frozenset[str] = frozenset()
    repeats: bool = False
    users_only: bool = False

    def family_names(self) -> list[str]:
        """The registered families that are meant."""
        if callable(self.families):
            return [name for name in families if self.families(families.get(name))]
        return families.select(*self.families)

    def modes_on(self, device: str) -> Sequence[Mode]:
        """The modes on ``device``."""
        return (*self.modes, *self.gpu_modes) if device == "cuda" else self.modes

    def sizes(self, device: str) -> Sizes:
        """The sizes on ``device``."""
        return self.on_gpu if device == "cuda" and self.on_gpu is not None else self.on_cpu


timing = partial(Grid, task="throughput", on_gpu=TIMED_GPU)
"""A throughput grid, sampled by the task's defaults; words of its recipe change them."""
memory = partial(Grid, task="memory", phases=("train-step",), on_gpu=TIMED_GPU)
"""A memory grid of whole training steps."""
counting = partial(Grid, task="cost", on_gpu=TIMED_GPU)
"""Parameters and multiply-adds of the networks that are timed."""
SHORT: Mapping[str, Any] = {"optimiser": "adam", "decay": 1.0, "rate": 0.003, "threshold": THRESHOLD}
"""The recipe of trainings that are too short for a search of rates: one for all."""
brief = partial(Grid, dataset="digits", on_cpu=CURVED, statuses=OUTCOMES)


def ladder(*, steps: int, seeds: int, rates: Sequence[float], together: bool = False, **grid: Any) -> Grid:
    """Trainability over depths with a rate search. Deep plain networks may stall or diverge. With ``together``, as many
    runs as there are seeds train as one population where that is faster; they have no time of their own."""
    recipe = {
        "optimiser": "sgd",
        "momentum": 0.9,
        "decay": 0.1,
        "steps": steps,
        "rate": TUNED,
        "rates": list(rates),
        "threshold": THRESHOLD,
        **({"together": seeds} if together else {}),
    }
    return Grid(
        task="trainability",
        dataset="mnist-5k",
        on_cpu=TRAINED,
        recipe=recipe,
        seeds=range(seeds),
        statuses=OUTCOMES,
        **grid,
    )


def skipping_ladder(*, depths: Sequence[int], steps: int = 300, seeds: int = 10, **grid: Any) -> Grid:
    """A ladder that skips a depth if the next shallower depth trained at no seed, so it can go deep. The seeds of a
    depth train together where that is faster."""
    rungs = ladder(steps=steps, seeds=seeds, rates=SGD_RATES, together=True, depths=depths, **grid)
    return with_ladder(replace(rungs, statuses=OUTCOMES | {Status.SKIPPED}))


def with_ladder(grid: Grid) -> Grid:
    """``grid`` with a ladder in its recipe, made of the grid's own depths, seeds and tuned rates."""
    seeds, rate = list(grid.seeds), grid.recipe.get("rate")
    rungs = {"depths": list(grid.depths), "seeds": len(seeds) if seeds == list(range(len(seeds))) else seeds}
    rates = {"rates": grid.recipe["rates"]} if rate == "tuned" and "rates" in grid.recipe else {}
    return replace(grid, recipe={**grid.recipe, "ladder": {**rungs, **rates}})


def short_curve(*, steps: int, **grid: Any) -> Grid:
    """One short loss curve per combination: shows that the network learns, and is too short for a verdict."""
    return brief(**{"task": "trainability", "recipe": {**SHORT, "steps": steps, "verdict": False}, **grid})


def trained_gates(*, steps: int, **grid: Any) -> Grid:
    """Gates and lesions of briefly trained networks, at one rate for all."""
    return brief(**{"task": "gates", "recipe": {**SHORT, "steps": steps}, **grid})


def start(*, gain: float = 1.0, **grid: Any) -> Grid:
    """Signal and gradient before training, with initial weights times ``gain``; sizes of Figure 1's networks."""
    return Grid(**{"task": "propagation", "dtypes": ("float64",), "on_cpu": PROBED, "recipe": {"gain": gain}, **grid})


def first_steps(*, steps: int, **grid: Any) -> Grid:
    """What the first steps of plain SGD on real data change in each layer, at one small rate for all."""
    recipe = {"gain": 1.0, "optimiser": "sgd", "rate": 0.01, "momentum": 0.0, "decay": 1.0, "steps": steps}
    return start(**{"dataset": "digits", "statuses": OUTCOMES, **grid, "recipe": recipe})
