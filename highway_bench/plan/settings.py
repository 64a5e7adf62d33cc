"""Settings: how each kind of layer trains where connections are compared.

``decide`` tunes and trains the connections of a setting; ``standard`` repeats some of these trainings and times steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from highway_bench.cell import STARTS, Cell
from highway_bench.families import Family
from highway_bench.plan.grid import MODERN, TIMED_GPU, TRAINED, TUNED, Grid, Sizes
from highway_bench.results.parquet import TABLE, known
from highway_bench.results.schema import OUTCOMES
from highway_bench.tasks.from_cell import cell_family, positions_of

FRESH_SEEDS: Final = 5
MORE_SEEDS: Final = 5
"""Seeds that are added where some of the first ones trained and others did not."""
FIRST_SGD_RATES: Final = (0.3, 0.1, 0.03)
"""The rates that SGD with momentum begins with."""
FIRST_ADAMW_RATES: Final = (0.01, 0.003, 0.001)
"""The rates that AdamW begins with."""
ADAMW: Final[Mapping[str, Any]] = {
    "optimiser": "adamw",
    "schedule": "cosine",
    "decay": 0.1,
    "weight_decay": 0.1,
    "clip": 1.0,
}
COSTED: Final[Mapping[str, Any]] = {"seconds": 0.2, "samples": 5, "processes": 3, "precision": 0.1, "limit": 0.5}
"""The recipe of a timed step in ``standard``."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is equal among the connections of a family: data, plain's ``width``, batches and recipe but for the learning
    rate, of which ``first`` are tried first."""

    family: str
    width: int
    batch_size: int
    recipe: Mapping[str, Any]
    first: Sequence[float]
    dataset: str = "mnist-5k"
    family_options: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, block: str) -> Cell:
        """A training of ``block``, but for its depth, learning rate and matched width."""
        return Cell(
            task="trainability",
            block=block,
            family=self.family,
            family_options=self.family_options,
            depth=1,
            width=self.width,
            nominal_width=self.width,
            batch_size=self.batch_size,
            dataset=self.dataset,
            recipe=self.recipe,
        )

    @property
    def sizes(self) -> Sizes:
        """Width and batches for the layers of any kind."""
        kinds = TRAINED.widths
        return Sizes(dict.fromkeys(kinds, self.width), dict.fromkeys(kinds, self.batch_size))

    def repeated(self, *depths: int) -> Grid:
        """The trainings with fresh seeds at the committed learning rates."""
        return self._grid(
            task="trainability",
            depths=depths,
            starts=STARTS,
            dataset=self.dataset,
            recipe={**self.recipe, "rate": TUNED, "rates": list(self.first)},
            seeds=range(FRESH_SEEDS),
            statuses=OUTCOMES,
            repeats=True,
        )

    def costs(self, depth: int) -> tuple[Grid, Grid]:
        """A training step's time and its bytes, of every connection."""
        cell = self.cell("plain")
        family = cell_family(cell)
        lengths = (positions_of(family, cell) if family.kind == "sequence" else None,)
        words: dict[str, Any] = {
            "depths": (depth,),
            "phases": ("train-step",),
            "seq_lens": lengths,
            "on_gpu": TIMED_GPU,
        }
        return self._grid(task="throughput", recipe=COSTED, **words), self._grid(task="memory", **words)

    def _grid(self, **words: Any) -> Grid:
        return Grid(
            families=(self.family,), family_options=self.family_options, groups=MODERN, on_cpu=self.sizes, **words
        )


_VISION: Final[Mapping[str, Any]] = {
    "batch_size": 32,
    "recipe": {**ADAMW, "warm_up": 50, "steps": 600, "dataset": {"pooled": 2}},
    "first": (0.03, 0.01, 0.003),
}
DENSE: Final = Setting(
    family="dense",
    width=TRAINED.widths["vector"],
    batch_size=TRAINED.batches["vector"],
    recipe={"optimiser": "sgd", "momentum": 0.9, "decay": 0.1, "steps": 600, "together": FRESH_SEEDS + MORE_SEEDS},
    first=FIRST_SGD_RATES,
)
CONV: Final = Setting(family="conv", width=16, **_VISION)
CONV_PAIR: Final = Setting(family="conv-pair", width=16, **_VISION)
BILSTM: Final = Setting(family="bilstm", width=32, **_VISION)
TRANSFORMER: Final = Setting(family="transformer", width=32, **_VISION)
LANGUAGE: Final = Setting(
    family="transformer",
    family_options={"causal": True},
    width=64,
    batch_size=16,
    dataset="language",
    recipe={**ADAMW, "warm_up": 100, "steps": 1_500},
    first=FIRST_ADAMW_RATES,
)


ALIKE: Final = ("kind", "data", "depth", "plain_width", "batch", "steps")
"""Columns of the committed table that are equal among connections whose learning rates were chosen alike."""
Rates = Mapping[tuple[str, str], float]
"""Learning rates by block and start."""


@cache
def _committed_rates() -> Mapping[tuple[Any, ...], Rates]:
    """The committed learning rates, by the columns ``ALIKE``."""
    found: dict[tuple[Any, ...], dict[tuple[str, str], float]] = {}
    for row in known(TABLE):
        if row["rate"] is not None:
            found.setdefault(tuple(row[name] for name in ALIKE), {})[row["connection"], row["start"]] = row["rate"]
    return found


def known_rates(family: Family, dataset: str | None, depth: int, width: int, batch_size: int, steps: int) -> Rates:
    """The committed learning rates of a family on a data set at a depth, at plain's ``width``; empty for none."""
    options = (name if value is True else f"{name}={value}" for name, value in family.options.items())
    kind = " ".join([family.name, *options])
    return _committed_rates().get((kind, dataset, depth, width, batch_size, steps), {})
