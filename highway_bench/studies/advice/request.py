"""Request: what an advice is about, checked before anything is measured, and the connections that it compares."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from highway_bench.blocks import BlockGroup, blocks
from highway_bench.cell import Cell, StartName
from highway_bench.data import fingerprint
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.key import versions_of
from highway_bench.execution.preflight import preflight
from highway_bench.families import AnyLayer, Family, as_family
from highway_bench.matching import matched_width
from highway_bench.network import check_depth
from highway_bench.plan.data_choice import DataChoice, check_choice, default_data, named_data
from highway_bench.plan.expand import joins
from highway_bench.plan.settings import ADAMW, FIRST_ADAMW_RATES, FIRST_SGD_RATES
from highway_bench.provenance import identity
from highway_bench.source import SourceTree
from highway_bench.studies.advice.options import AdviceOptions
from highway_bench.studies.advice.own_code import check_joinable, constant_loss_under
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.success.judging import THRESHOLD
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_stack, check_device, default_device, positions_of

WIDTHS: Final = {"vector": 64, "image": 16, "sequence": 32}
BATCHES: Final = {"vector": 100, "image": 32, "sequence": 32}
GROUPS: Final[tuple[BlockGroup, ...]] = ("core", "modern", "own")
RECIPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "sgd": {"optimiser": "sgd", "momentum": 0.9, "decay": 0.1},
    "adamw": ADAMW,  # that of ``decide``
}
FIRST_RATES: Final = {"sgd": FIRST_SGD_RATES, "adamw": FIRST_ADAMW_RATES}
WARM_UP: Final = 10  # AdamW's warm-up is the first tenth of the steps
RULES: Final = 3  # of halving and finals; an advice by other rules is another one
TUNING_SEEDS: Final = 20_000  # from here on; other parts of the package have smaller ones
FINAL_SEEDS: Final = 40_000
SEEDS_APART: Final = 100  # between the seeds of two repetitions


class Connection(NamedTuple):
    """A block at one of its starts."""

    block: str
    start: StartName

    def __str__(self) -> str:
        starts = blocks.get(self.block).starts if self.block in blocks else ()
        return f"{self.block} ({self.start} start)" if len(starts) > 1 else self.block


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """A checked request: the layer as a ``family``, its sizes, the data, and the time.

    ``optimiser`` has the recipe of the trainings, but for learning rate, steps and warm-up. ``steps`` are those of the
    finals; without, the minutes decide them. ``blocks`` are patterns of the blocks to compare; none for all. ``loss``
    is the user's own as ``module:function``. ``repetition`` numbers advices that differ in their seeds alone.
    ``remarks`` say what is done with a user's layer.
    """

    family: Family
    depth: int
    width: int
    batch_size: int
    minutes: float
    data: DataChoice
    optimiser: str
    steps: int | None
    loss: str | None
    blocks: tuple[str, ...]
    device: str
    repetition: int
    remarks: tuple[str, ...]

    @cached_property
    def connections(self) -> list[Connection]:
        """What is compared."""
        return connections_for(self.family, self.blocks)

    @cached_property
    def chance_loss(self) -> float:
        """The loss of the best constant prediction; raises ``BadInput`` for a loss that cannot be trained with."""
        dataset = self.data.dataset
        return dataset.chance_loss if self.loss is None else constant_loss_under(self.loss, dataset)

    @cached_property
    def template(self) -> Cell:
        """The cell of a training with pre-norm, without a start, a learning rate or steps."""
        recipe = {**RECIPES[self.optimiser], "dataset": dict(self.data.options), "evaluate": "never"}
        if self.loss is not None:
            recipe["loss"] = self.loss
            # Success is a share of the data set's own chance loss.
            recipe["threshold"] = THRESHOLD * self.chance_loss / self.data.dataset.chance_loss
        return Cell(
            task="trainability",
            block=REFERENCE,
            family=self.family.name,
            family_options=self.family.options,
            depth=self.depth,
            width=self.widths[REFERENCE],
            nominal_width=self.width,
            batch_size=self.batch_size,
            dtype=self.family.dtype or "float32",
            device=self.device,
            dataset=self.data.name,
            recipe=recipe,
        )

    @cached_property
    def untrained(self) -> Cell:
        """The cell of pre-norm's network on examples, without data."""
        steps = positions_of(self.family, self.template) if self.family.kind == "sequence" else None
        return self.template.but(dataset=None, recipe={}, seq_len=steps)

    def preflight(self, plugins: Sequence[str] = ()) -> None:
        """Try a layer of the user's own with each connection, on the data and as it is timed; raises ``BadInput``."""
        preflight([*(self.run(one, 2, self.first_rates[-1], 0) for one in self.connections), self.untrained], plugins)

    @property
    def first_rates(self) -> tuple[float, ...]:
        """The learning rates that every connection tries first."""
        return FIRST_RATES[self.optimiser]

    @cached_property
    def widths(self) -> dict[str, int]:
        """The width of each block, with which its layer has as many parameters as plain's at ``width``."""
        names = dict.fromkeys([REFERENCE, *(one.block for one in self.connections)])
        return {name: matched_width(blocks.get(name), self.family, self.width, "params") for name in names}

    def run(self, connection: Connection, steps: int, rate: float, seed: int, **recipe: Any) -> Cell:
        """The cell of one training."""
        warm_up = {"warm_up": steps // WARM_UP} if self.optimiser == "adamw" else {}
        words = {**self.template.recipe, "steps": steps, "rate": rate, **warm_up, **recipe}
        block, start = connection
        return self.template.but(block=block, start=start, width=self.widths[block], seed=seed, recipe=words)

    def tuning_seeds(self, count: int) -> range:
        """The seeds of the runs that choose connections and learning rates."""
        return self._seeds(TUNING_SEEDS, count)

    def final_seeds(self, count: int) -> range:
        """The fresh seeds of the finals."""
        return self._seeds(FINAL_SEEDS, count)

    def _seeds(self, first: int, count: int) -> range:
        start = first + SEEDS_APART * self.repetition
        return range(start, start + count)

    @property
    def name(self) -> str:
        """A folder's name for this request: layer, depth, and the start of a hash of all that its answer depends on."""
        parts = [
            RULES,
            self.template.identity,
            [list(one) for one in self.connections],
            self.minutes,
            self.steps,
            self.repetition,
            fingerprint(self.data.dataset),
            versions_of(self.template, SourceTree()),
            list(identity(self.device)),
        ]
        layer = re.sub(r"[^\w]+", "-", self.family.name.rpartition(":")[2]).strip("-")
        return f"{layer}-{self.depth}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]}"


def requested(layer: AnyLayer, *, depth: int, minutes: float, **options: Any) -> AdviceRequest:
    """The request for ``layer``: a family, its name, a factory, or the name ``module:factory`` of one; ``options`` are
    the fields of ``AdviceOptions``.

    Data of the user's own are read and copied. Raises ``BadInput``, in one line, for all that can be known before a
    measurement.
    """
    given = AdviceOptions.of(**options)
    check_depth(depth)
    limit: Any = minutes  # of whoever calls without types
    if not (isinstance(limit, int | float) and 0 < limit < math.inf):
        raise BadInput(f"minutes must be a number above 0, not {limit!r}")
    device = given.device or default_device()
    check_device(device)
    family, width = sized(layer, given.family_options, given.width)
    data = default_data(family, width)
    if given.data is not None:
        data = named_data(given.data, target=given.target, images=family.kind == "image")
    data = data.but(given.data_options)
    is_own = ":" in family.name
    if is_own and family.kind == "vector" and "kind" not in given.family_options and data.has_steps:
        family, width = sized(layer, {**given.family_options, "kind": "sequence"}, given.width)
        data = data.with_note("the layer takes vectors, and gets every step")
    if is_own:
        check_joinable(family, width)
    batch_size = given.batch_size or BATCHES[family.kind]
    check_choice(data, batch_size)
    # With SGD, ``decide`` found too few networks of sequences trained.
    optimiser = given.optimiser or ("adamw" if family.kind == "sequence" else "sgd")
    if optimiser not in RECIPES:
        raise UnknownName("optimiser", optimiser, RECIPES)
    remarks = list(family.remarks)
    if given.width not in (None, width):
        remarks.append(f"it does not take width {given.width}, and is measured at {width}")
    request = AdviceRequest(
        family=family,
        depth=depth,
        width=width,
        batch_size=batch_size,
        minutes=minutes,
        data=data,
        optimiser=optimiser,
        steps=given.steps,
        loss=given.loss,
        blocks=given.block,
        device=device,
        repetition=given.repetition,
        remarks=tuple(f"{family.name}: {remark}." for remark in remarks),
    )
    try:
        cell_stack(request.run(request.connections[0], 2, 0.1, 0).but(depth=1, device="cpu"))
    except Skip as reason:
        raise BadInput(str(reason)) from None
    return request


def sized(layer: AnyLayer, options: Mapping[str, Any], width: int | None) -> tuple[Family, int]:
    """The family of ``layer``, and ``width`` or a usual one for its kind, or the next one that it accepts.

    Raises ``BadInput`` for a layer that cannot be joined for its inputs or its shapes.
    """
    family = as_family(layer, **options)
    step = family.width_step
    nominal = family.nearest_width(width or math.ceil(WIDTHS[family.kind] / step) * step)
    family.check_width(nominal)
    return family, nominal


def connections_for(family: Family, patterns: Sequence[str] = ()) -> list[Connection]:
    """Every connection that ``family`` can carry, or those of the blocks that match ``patterns``, and pre-norm.

    Controls and variants are among them only where a pattern is their full name. When time is short, the last ones are
    left out: first come the depth-aware starts (the only start of blocks that depend on depth in any case) in the order
    of the blocks, plain last; then the other starts in the same order. Raises ``UnknownName`` for a pattern that
    matches nothing, and ``BadInput`` for a full name of a block that ``family`` cannot have.
    """
    chosen = blocks.select(*(patterns or ["*"]), REFERENCE)
    specs = [blocks.get(name) for name in chosen if blocks.get(name).group in GROUPS or name in patterns]
    for spec in specs:
        if spec.name in patterns:
            spec.check_family(family)
    ranks: dict[Connection, tuple[bool, bool, bool, float, str]] = {}
    for spec in specs:
        starts = [start.name for start in spec.starts if start.init in family.inits]
        if starts and joins(spec.name, family):
            main: StartName = "depth-aware" if "depth-aware" in starts else starts[0]
            for start in starts:
                reference = spec.name == REFERENCE and start == main
                order = math.inf if spec.order is None else spec.order
                ranks[Connection(spec.name, start)] = (not reference, start != main, spec.baseline, order, spec.name)
    return sorted(ranks, key=ranks.__getitem__)
