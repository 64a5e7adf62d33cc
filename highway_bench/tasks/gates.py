"""Gates: what a trained network's gates do layer by layer, how its layers are mixed, and the lesion.

The network is trained as ``trainability`` trains it, with the same metrics. It is then evaluated over the whole
training set in evaluation mode (arXiv:1507.06228, §4), without steps of padding. Layers are the block's connections,
counted from 1; a stem is not counted. The gate is the first one of a block, which is the transform gate T where there
is one. A layer has values of gates if it has a gate, and a lesion if it carries its input; the change of the stream is
measured in every layer. Depth mixing (see ``analysis.mixing``) is that of a few training items, at the start and after
training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from highway_bench.cell import Cell
from highway_bench.measure.precision import cast
from highway_bench.success.judging import Judgement
from highway_bench.tasks._gated_layers import NetworkRecord, gate_biases, lesions
from highway_bench.tasks._layer_measurements import mixing_measurements
from highway_bench.tasks.architecture_network import started_network
from highway_bench.tasks.base import CellCost, register_task
from highway_bench.tasks.from_cell import cell_dtype
from highway_bench.tasks.measurement import Measurement, Metric
from highway_bench.tasks.trainability import Trainability, TrainingWork
from highway_bench.training.recipe import Recipe

LESION_STEPS = 8  # the cost of one lesion in training steps of the network: an evaluation of 4,000 items


@register_task
class GatesTask(Trainability):
    """Gate biases, gate activity, change of the stream and lesion curve of a trained network, by layer."""

    name = "gates"
    version = "2"
    metrics = (
        *Trainability.metrics,
        Metric(
            "intact_loss", "nat", "lower", label="training loss", hint="after training, over the whole training set"
        ),
        Metric(
            "intact_error",
            "1",
            "lower",
            label="training error",
            hint="after training, over the whole training set",
            percent=True,
        ),
        Metric(
            "sparsity_one",
            "1",
            label="sparsity for one",
            hint="Hoyer's, of all gates for one item: 0 where equal, 1 where one is on",
        ),
        Metric("sparsity_average", "1", label="sparsity on average", hint="Hoyer's, of the gates' means over items"),
        Metric("gate_bias_start", "1", label="gate bias, start", hint="mean over units"),
        Metric("gate_bias_end", "1", label="gate bias, end", hint="mean over units"),
        Metric("gate_activity", "1", label="mean T", hint="of the transform gate over items and units", percent=True),
        Metric("gates_shut", "1", label="gates shut", hint="units whose mean T over items is below 0.05", percent=True),
        Metric(
            "gates_full",
            "1",
            label="shortcuts closed",
            hint="units and items with T > 0.95, where C = 1 − T < 0.05",
            percent=True,
        ),
        Metric(
            "gates_open_one",
            "1",
            label="open for one",
            hint="units with T > 0.5 for one item, the mean over items",
            percent=True,
        ),
        Metric(
            "gates_open_average",
            "1",
            label="open on average",
            hint="units whose mean T over items is above 0.5",
            percent=True,
        ),
        Metric(
            "gates_open_some",
            "1",
            label="open for some",
            hint="units with T > 0.5 for an item in a hundred or more",
            percent=True,
        ),
        Metric(
            "gate_class_spread",
            "1",
            label="class spread",
            hint="standard deviation of T's class means, the mean over units",
        ),
        Metric("stream_change", "1", label="‖Δx‖ / ‖x‖", hint="how much a layer changes its input"),
        *(
            Metric(f"mixing_{of}{when}", "1", label=f"{label}, {time}", hint="samples: of v₀ and each earlier branch")
            for of, label in (("", "depth mixing"), ("share_", "share of the input"))
            for when, time in (("start", "start"), ("end", "end"))
        ),
        Metric("lesion_loss", "nat", "lower", label="loss without it", hint="training loss with this layer cut out"),
        Metric(
            "lesion_error",
            "1",
            "lower",
            label="error without it",
            hint="training error with this layer cut out",
            percent=True,
        ),
    )

    def needs(self, cell: Cell) -> tuple[Cell, ...]:
        """The trials of the search, which are cells of the task ``trainability``."""
        return super().needs(_trainability_cell(cell))

    def resolve(self, cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Cell:
        return super().resolve(_trainability_cell(cell), results).but(task=self.name)

    def cost(self, cell: Cell) -> CellCost:
        """The cost of training, and of one evaluation a layer."""
        training, steps = super().cost(cell), int(cell.recipe.get("steps", Recipe.steps))
        return replace(training, seconds=training.seconds * (1 + LESION_STEPS * cell.depth / steps))

    def results(self, work: TrainingWork, cell: Cell, run: Judgement) -> Iterator[Measurement]:
        yield from super().results(work, cell, run)
        if run.final is None:  # it diverged: its weights are not finite
            return
        network, split, kind = work.training.network, work.data.train, work.dataset.target_kind
        record = NetworkRecord.of(network, split, kind)
        for metric, value in record.network_values().items():
            yield Measurement(metric=metric, value=value)
        start = cast(started_network(cell), cell_dtype(cell))  # built again: the trained one may be from a checkpoint
        yield from measurements_by_layer("gate_bias_start", gate_biases(start))
        yield from measurements_by_layer("gate_bias_end", gate_biases(network))
        for metric, values in record.layer_values().items():
            yield from measurements_by_layer(metric, values)
        for metric, values in lesions(network, split, kind).items():
            yield from measurements_by_layer(metric, values)
        yield from mixing_measurements(start, split.inputs, "start")
        yield from mixing_measurements(network, split.inputs, "end")


def measurements_by_layer(metric: str, values: Mapping[int, float | None]) -> Iterator[Measurement]:
    """A metric's values by layer; a value that is not finite becomes ``None``."""
    for layer, value in values.items():
        finite = value if value is not None and math.isfinite(value) else None
        yield Measurement(metric=metric, value=finite, axis="layer", index=layer)


def _trainability_cell(cell: Cell) -> Cell:
    return cell.but(task=Trainability.name)
