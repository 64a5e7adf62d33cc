"""Request: what an advice is about, checked before anything is measured."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from highway_bench.blocks import blocks
from highway_bench.by_value import named_value, reference_to
from highway_bench.cell import Cell
from highway_bench.data import fingerprint
from highway_bench.errors import BadInput, UnknownName
from highway_bench.execution.preflight import preflight
from highway_bench.families import AnyLayer, Family, as_family
from highway_bench.matching import matched_width
from highway_bench.network import check_depth
from highway_bench.plan.data_choice import DataChoice, check_data, default_data, named_data
from highway_bench.plan.settings import ADAMW, FIRST_ADAMW_RATES, FIRST_SGD_RATES
from highway_bench.provenance import identity
from highway_bench.registry import reference_of
from highway_bench.source import SourceTree
from highway_bench.studies.advice.budget import LEAST_STEPS
from highway_bench.studies.advice.connections import Connection, connections_for
from highway_bench.studies.advice.joinable import check_joinable
from highway_bench.studies.advice.own_loss import constant_loss_under
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.success.judging import THRESHOLD
from highway_bench.tasks.base import Skip
from highway_bench.tasks.from_cell import cell_stack, check_device, default_device, positions_of

WIDTHS: Final = {"vector": 64, "image": 16, "sequence": 32}
BATCHES: Final = {"vector": 100, "image": 32, "sequence": 32}

Optimiser = Literal["sgd", "adamw"]
RECIPES: Final[Mapping[Optimiser, Mapping[str, Any]]] = {
    "sgd": {"optimiser": "sgd", "momentum": 0.9, "decay": 0.1},
    "adamw": ADAMW,  # that of ``decide``
}
FIRST_RATES: Final[Mapping[Optimiser, tuple[float, ...]]] = {"sgd": FIRST_SGD_RATES, "adamw": FIRST_ADAMW_RATES}
WARM_UP: Final = 10  # AdamW's warm-up is the first tenth of the steps
RULES: Final = 3  # of halving and finals; an advice by other rules is another one
TUNING_SEEDS: Final = 20_000  # from here on; other parts of the package have smaller ones
FINAL_SEEDS: Final = 40_000
SEEDS_APART: Final = 100  # between the seeds of two repetitions


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """A checked request: the layer as a ``family``, its sizes, the data, and the time.

    ``optimiser`` has the recipe of the trainings, but for learning rate, steps and warm-up. ``steps`` are those of the
    finals; without, the minutes decide them. ``blocks`` are patterns of the blocks to compare; none for all. ``loss``
    is the user's own as ``module:function``, ``chance_loss`` that of the best constant prediction. ``repetition``
    numbers advices that differ in their seeds alone. ``data_hash`` identifies the items that it trains on. ``remarks``
    say what is done with a user's layer.
    """

    family: Family
    depth: int
    width: int
    batch_size: int
    minutes: float
    data: DataChoice
    chance_loss: float
    data_hash: str
    optimiser: Optimiser
    steps: int | None = None
    loss: str | None = None
    blocks: tuple[str, ...] = ()
    device: str = "cpu"
    repetition: int = 0
    remarks: tuple[str, ...] = ()

    @cached_property
    def connections(self) -> list[Connection]:
        """What is compared."""
        return connections_for(self.family, self.blocks)

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

    def preflight(self, plugins: Sequence[str] = ()) -> None:
        """Try a layer of the user's own with each connection, on the data and as it is timed; raises ``BadInput``."""
        trained = [self.run(one, 2, self.first_rates[-1], 0) for one in self.connections]
        steps = positions_of(self.family, self.template) if self.family.kind == "sequence" else None
        preflight([*trained, trained[0].but(dataset=None, recipe={}, seq_len=steps)], plugins)

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
        return seeds_from(TUNING_SEEDS, count, self.repetition)

    def final_seeds(self, count: int) -> range:
        """The fresh seeds of the finals."""
        return seeds_from(FINAL_SEEDS, count, self.repetition)

    @property
    def name(self) -> str:
        """A folder's name for this request: layer, depth, and the start of a hash of all that its answer depends on."""
        parts = [
            RULES,
            self.template.key,
            [list(one) for one in self.connections],
            self.minutes,
            self.steps,
            self.repetition,
            self.data_hash,
            sources_of(self.family.name, self.loss),
            list(identity(self.device)),
        ]
        layer = re.sub(r"[^\w]+", "-", self.family.name.rpartition(":")[2]).strip("-")
        return f"{layer}-{self.depth}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:8]}"


def requested(
    layer: AnyLayer,
    *,
    depth: int,
    minutes: float,
    data: Any = None,
    target: str | None = None,
    data_options: Mapping[str, Any] | None = None,
    loss: str | Callable[..., Any] | None = None,
    optimiser: str | None = None,
    steps: int | None = None,
    width: int | None = None,
    batch_size: int | None = None,
    block: Sequence[str] = (),
    family_options: Mapping[str, Any] | None = None,
    device: str | None = None,
    repetition: int = 0,
) -> AdviceRequest:
    """The request for ``layer``: a family, its name, a factory, or the name ``module:factory`` of one.

    Data of the user's own are read and copied. Raises ``BadInput``, in one line, for all that can be known before a
    measurement.
    """
    check_sizes(depth, minutes, steps, width, batch_size)
    chosen_device = device or default_device()
    check_device(chosen_device)
    options = family_options or {}
    layers, nominal = sized(layer, options, width)
    choice = default_data(layers, nominal)
    if data is not None:
        choice = named_data(data, target=target, images=layers.kind == "image")
    choice = choice.but(data_options or {})
    if ":" in layers.name and layers.kind == "vector" and "kind" not in options and choice.has_steps:
        layers, nominal = sized(layer, {**options, "kind": "sequence"}, width)
        choice = choice.with_note("the layer takes vectors, and gets every step")
    if ":" in layers.name:
        check_joinable(layers, nominal)
    batch = batch_size or BATCHES[layers.kind]
    check_data(choice, batch)
    loss = reference_of(loss) if isinstance(loss, str) else None if loss is None else reference_to(loss)
    request = AdviceRequest(
        family=layers,
        depth=depth,
        width=nominal,
        batch_size=batch,
        minutes=minutes,
        data=choice,
        chance_loss=choice.dataset.chance_loss if loss is None else constant_loss_under(loss, choice.dataset),
        data_hash=fingerprint(choice.dataset),
        optimiser=chosen_optimiser(optimiser, layers),
        steps=steps,
        loss=loss,
        blocks=tuple(block),
        device=chosen_device,
        repetition=repetition,
        remarks=remarks_on(layers, width, nominal),
    )
    try:
        cell_stack(request.run(request.connections[0], 2, 0.1, 0).but(depth=1, device="cpu"))
    except Skip as reason:
        raise BadInput(str(reason)) from None
    return request


def remarks_on(layers: Family, width: int | None, nominal: int) -> tuple[str, ...]:
    """What is done with a user's layer, each in a sentence; ``nominal`` is taken instead of ``width``."""
    other = [f"it does not take width {width}, and is measured at {nominal}"] if width not in (None, nominal) else []
    return tuple(f"{layers.name}: {remark}." for remark in (*layers.remarks, *other))


def check_sizes(depth: int, minutes: float, steps: int | None, width: int | None, batch_size: int | None) -> None:
    """Raise ``BadInput`` for a depth, a time, steps or a size that nothing can have."""
    check_depth(depth)
    if not (math.isfinite(minutes) and minutes > 0):
        raise BadInput(f"minutes must be above 0, not {minutes:g}")
    for name, least, value in (("steps", LEAST_STEPS, steps), ("width", 1, width), ("batch size", 1, batch_size)):
        if value is not None and value < least:
            raise BadInput(f"{name} must be at least {least}, not {value}")


def chosen_optimiser(name: str | None, layers: Family) -> Optimiser:
    """The optimiser called ``name``. By default SGD with momentum, and AdamW for sequences: with SGD, ``decide`` found
    too few of their networks trained. Raises ``UnknownName``."""
    if name is None:
        return "adamw" if layers.kind == "sequence" else "sgd"
    for known in RECIPES:
        if name == known:
            return known
    raise UnknownName("optimiser", name, RECIPES)


def sized(layer: AnyLayer, options: Mapping[str, Any], width: int | None) -> tuple[Family, int]:
    """The family of ``layer``, and ``width`` or a usual one for its kind.

    Raises ``BadInput`` for a layer that cannot be joined for its inputs or its shapes.
    """
    result = as_family(layer, **options)
    return result, checked_width(result, width)


def checked_width(layers: Family, width: int | None) -> int:
    """``width``, or the usual one for the kind of ``layers``, or the next one that they accept; it is checked."""
    step = layers.width_step
    nominal = layers.nearest_width(width or math.ceil(WIDTHS[layers.kind] / step) * step)
    layers.check_width(nominal)
    return nominal


def seeds_from(first: int, count: int, repetition: int) -> range:
    """``count`` seeds of a repetition."""
    start = first + SEEDS_APART * repetition
    return range(start, start + count)


def sources_of(*references: str | None) -> str:
    """A hash of ``references``, and of the source of their modules and of what these import."""
    given = [one for one in references if one is not None and ":" in one]
    values = {one: value for one in given if (value := named_value(one)) is not None}
    modules = [one.partition(":")[0] for one in given if one not in values]
    tree = [SourceTree().digest(modules), *(value.key for value in values.values())] if given else ""
    return hashlib.sha256(json.dumps([given, tree]).encode()).hexdigest()
