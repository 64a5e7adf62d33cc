"""Evidence: the parts that train longer, on more data and with batch norms. Each fits its limit of core-hours.

The settings were written before any of these parts was run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from highway_bench.cell import Cell
from highway_bench.decide import language, vision
from highway_bench.decide.candidate import LONGER, REFERENCE, TUNING_SEEDS, Candidate, starts_of
from highway_bench.decide.part import Part
from highway_bench.decide.ranked import SCHEDULES, RankedPart
from highway_bench.plan import settings
from highway_bench.plan.grid import TRAINED
from highway_bench.plan.settings import ADAMW, CONV, FIRST_ADAMW_RATES, FIRST_SGD_RATES, FRESH_SEEDS, LANGUAGE
from highway_bench.tasks.from_cell import pinned

TEXT = (REFERENCE, "residual", "highway-free", "branch-scaled", "layerscale", "deepnorm")
NEW = (REFERENCE, "gated-residual", "value-residual", "layer-scalar")
DEEP = (REFERENCE, "residual", "deepnorm", "dense-average", "hc-dynamic", "parallel", "highway", "highway-free")
NORMED = (REFERENCE, "plain", "residual", "residual-relu", "highway", "post-norm", "rezero", "deepnorm")
DENSE = (REFERENCE, "plain", "highway", "residual", "rezero", "deepnorm")

RESNET_STEPS, TEXT_STEPS, LONG_STEPS, MNIST_STEPS = 1_200, 1_500, 6_000, 3_000
ONE_SEED = TUNING_SEEDS[:1]


def equal_width() -> Part:
    """Highway of vision in conv at plain's width, as it has in conv-pair; at equal parameters it has 11 features.

    It ends at 10 layers: lower rates, longer runs and this part share five core-hours.
    """
    of_highway = next(one for one in vision.vision().only(["conv"]).candidates if one.template.block == "highway")
    cell = of_highway.template.but(match="width", start=None, depth=1)
    return Part("equal-width", tuple(starts_of(cell, of_highway.depths[:2], CONV.first, longer=LONGER)))


def resnet() -> RankedPart:
    """Residual blocks with batch norms on digits: 8 core-hours. At 10 pairs, pre-norm's whole schedules too."""
    recipe = {**ADAMW, "warm_up": 100, "steps": RESNET_STEPS, "dataset": {"pooled": 2}}
    cell = trained("resnet", width=16, batch=32, dataset="mnist-5k", recipe=recipe)
    return RankedPart(
        "resnet",
        candidates(cell, NORMED, (5, 10, 20), CONV.first),
        leaders=3,
        leader_seeds=10,
        rungs=[rung for rung in SCHEDULES if rung != 1],
        rung_steps=RESNET_STEPS,
        rung_depth=10,
    )


def long() -> RankedPart:
    """Language at 6 layers and four times the steps: 8 core-hours. Pre-norm's shorter schedules too, from 375 steps."""
    cell = text("language", steps=LONG_STEPS)
    return RankedPart(
        "long",
        candidates(cell, TEXT, (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED),
        rungs=[rung for rung in SCHEDULES if rung < max(SCHEDULES)],
        rung_steps=TEXT_STEPS,
        rung_depth=language.SHALLOW,
    )


def code() -> RankedPart:
    """The standard library of Python at 6 layers: 3 core-hours."""
    return RankedPart("code", candidates(text("code"), TEXT, (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED))


def new() -> RankedPart:
    """The connections of 2026-11-29 on language at 6 layers: 3 core-hours."""
    return RankedPart("new", candidates(text("language"), NEW, (language.SHALLOW,), FIRST_ADAMW_RATES))


def deep() -> RankedPart:
    """Language at 24 layers with every best rate inside of those tried: 5 core-hours."""
    rates = (0.003, 0.001, 0.0003)
    return RankedPart("deep", candidates(text("language"), DEEP, (language.DEEP,), rates, tuning=ONE_SEED))


def mnist() -> RankedPart:
    """Dense layers on all of MNIST, by SGD at three depths and by AdamW at two: 3 core-hours."""
    sgd = {**settings.DENSE.recipe, "steps": MNIST_STEPS}
    adamw = {
        **ADAMW,
        "warm_up": 100,
        "steps": settings.DENSE.recipe["steps"],
        "together": settings.DENSE.recipe["together"],
    }
    width = TRAINED.widths["vector"]
    whole = trained("dense", width=width, batch=100, dataset="mnist", recipe=sgd)
    small = trained("dense", width=width, batch=100, dataset="mnist-5k", recipe=adamw)
    by_sgd = candidates(whole, DENSE, (20, 50, 100), FIRST_SGD_RATES)
    by_adamw = candidates(small, DENSE, (20, 100), FIRST_ADAMW_RATES)
    return RankedPart("mnist", (*by_sgd, *by_adamw))


def wide() -> RankedPart:
    """Language at 6 layers of width 128 with learning rates of their own: 4 core-hours."""
    cell = text("language", width=language.WIDER)
    return RankedPart(
        "wide",
        candidates(cell, TEXT[:5], (language.SHALLOW,), FIRST_ADAMW_RATES, tuning=ONE_SEED, fresh=range(3)),
    )


def text(dataset: str, *, width: int = LANGUAGE.width, steps: int = TEXT_STEPS) -> Cell:
    """The cell of a causal transformer on text, with the recipe of the part ``language``."""
    warm_up = LANGUAGE.recipe["warm_up"] * steps // LANGUAGE.recipe["steps"]
    recipe = {**LANGUAGE.recipe, "steps": steps, "warm_up": warm_up}
    cell = trained("transformer", width=width, batch=LANGUAGE.batch_size, dataset=dataset, recipe=recipe)
    return pinned(cell.but(family_options={"causal": True}))


def trained(family: str, *, width: int, batch: int, dataset: str, recipe: dict[str, Any]) -> Cell:
    """A cell of ``trainability`` with the reference as its block."""
    return Cell(
        task="trainability",
        block=REFERENCE,
        family=family,
        depth=1,
        width=width,
        nominal_width=width,
        batch_size=batch,
        dataset=dataset,
        recipe=recipe,
    )


def candidates(
    cell: Cell, names: Sequence[str], depths: Sequence[int], first: Sequence[float], **words: Any
) -> tuple[Candidate, ...]:
    """Each named block at each of its starts, with five fresh seeds unless ``words``, fields of ``Candidate``, say
    otherwise."""
    fields = {"fresh": range(FRESH_SEEDS), "more": (), "longer": LONGER if cell.dataset == "mnist-5k" else 1, **words}
    return tuple(chain.from_iterable(starts_of(cell.but(block=name), depths, first, **fields) for name in names))
