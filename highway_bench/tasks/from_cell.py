"""From a cell's plain values to what tasks run: its device, dtype, block, family, stack of layers and recipe.

``network_bytes`` estimates from closed forms; no network is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import DTYPES, Cell
from highway_bench.data import DataSet, datasets, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import Family, Transform, make_family
from highway_bench.matching import mismatch
from highway_bench.measure.precision import TF32, cast, torch_dtype, use_precision
from highway_bench.network import build
from highway_bench.stem_head import Incompatible, feature_positions
from highway_bench.tasks.base import Skip, value_of
from highway_bench.tasks.measurement import Measurement, Metric
from highway_bench.training.recipe import TRAINING, Recipe

TORCH_DTYPES: dict[str, torch.dtype] = {name: torch_dtype(name) for name in DTYPES}
REMARKED = 0.02  # of a budget, above which a row says how far off it is
BUDGET_MISMATCH = Metric(
    "budget_mismatch", "1", label="parameters off", hint="what rounding of widths leaves", percent=True
)
SAVED_PER_CONNECTION = 2  # maps saved for the backward pass besides those of transform and gates: input, product
SAVED_PER_GATE = 2  # the gate before and after its sigmoid
TAPS = 9  # of a 3 × 3 kernel: weights of a convolution for each pair of an input and an output feature


def default_device() -> str:
    """``cuda`` where torch finds such a device, else ``cpu``."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def cell_device(cell: Cell) -> torch.device:
    """The cell's device; raises ``BadInput`` where this machine lacks it."""
    return check_device(cell.device)


def check_device(name: str) -> torch.device:
    """The device called ``name``; raises ``BadInput`` for an unknown one, or one that this machine lacks."""
    if name not in ("cpu", "cuda"):
        raise BadInput(f"unknown device {name!r}; known: cpu, cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise BadInput("device 'cuda' was requested, but torch finds no CUDA device on this machine")
    return torch.device(name)


def cell_dtype(cell: Cell) -> torch.dtype:
    """torch's dtype of the cell; raises ``BadInput`` for an unknown one, and for TF32 on a CPU."""
    check_dtype(cell.dtype, cell.device)
    try:
        return TORCH_DTYPES[cell.dtype]
    except KeyError:
        raise BadInput(f"unknown dtype {cell.dtype!r}; known: {', '.join(DTYPES)}") from None


def check_dtype(dtype: str, device: str) -> None:
    """Raise ``BadInput`` for a dtype in which no device of this kind computes."""
    if dtype == TF32 and device != "cuda":
        raise BadInput("tf32 is a precision of GPUs: choose float32 on a CPU")


def cell_spec(cell: Cell) -> BlockSpec:
    """The cell's block."""
    return blocks.get(cell.block)


def cell_family(cell: Cell) -> Family:
    """The cell's family with the cell's options."""
    return make_family(cell.family, **cell.family_options)


def cell_stack(cell: Cell) -> nn.Module:
    """The cell's network on its device, in its dtype: the bare stack, or with stem and head where it has a data set.

    It is built on the CPU under the cell's seed, so its start is the same on every device. Raises ``Skip`` where the
    family cannot read the data set.
    """
    return on_device(started_stack(cell), cell)


@contextmanager
def skip_incompatible() -> Iterator[None]:
    """Raise ``Skip`` where parts of a cell's network are ``Incompatible``."""
    try:
        yield
    except Incompatible as reason:
        raise Skip(str(reason)) from reason


@skip_incompatible()
def started_stack(cell: Cell) -> nn.Module:
    """``cell_stack`` before it is moved: on torch's default device, in float32."""
    return build(
        cell.block,
        cell_family(cell),
        width=cell.width,
        depth=cell.depth,
        dataset=cell_dataset(cell),
        block_options=cell.block_options,
        start=cell.start,
        seed=cell.seed,
    )


def on_device(network: nn.Module, cell: Cell) -> nn.Module:
    """``network`` on the cell's device, in its dtype, with whose precision this process computes from now on."""
    use_precision(cell.dtype)
    return cast(network, cell_dtype(cell), cell_device(cell))


def cell_dataset(cell: Cell) -> DataSet | None:
    """The cell's data set with the cell's options, nothing of it read; ``None`` for a cell without one."""
    return None if cell.dataset is None else make_dataset(cell.dataset, **dataset_options(cell))


def dataset_options(cell: Cell) -> dict[str, Any]:
    """Options of the cell's data set: those of its recipe, and its length where the cell has one."""
    options = dict(cell.recipe.get("dataset", {}))
    return options | ({"length": cell.seq_len} if cell.seq_len is not None else {})


def pinned(cell: Cell) -> Cell:
    """``cell`` with the options in its recipe that say which data it has, where its data set depends on the machine.

    Options that it has already stay as they are.
    """
    pins = datasets.get(cell.dataset).cls.pins if cell.dataset is not None and cell.dataset in datasets else {}
    given = cell.recipe.get("dataset", {})
    lacking = {name: value() for name, value in pins.items() if name not in given}
    return cell.but(recipe={**cell.recipe, "dataset": {**given, **lacking}}) if lacking else cell


def positions_of(family: Family, cell: Cell) -> int:
    """Positions of one item that have features: pixels or steps of the cell's data set, or of the family's example."""
    return feature_positions(family, None if family.kind == "vector" else cell_dataset(cell), cell.seq_len)


def budget_mismatch(cell: Cell) -> Measurement:
    """A layer's cost minus that of plain at the nominal width, relative to plain's; with a remark where it is large."""
    family = cell_family(cell)
    value = mismatch(cell_spec(cell), family, cell.width, cell.nominal_width, cell.match, positions_of(family, cell))
    what = "FLOP" if cell.match == "flops" else "parameters"
    remark = f"{100 * value:+.1f} % {what} of plain's" if abs(value) > REMARKED else None
    return Measurement(metric=BUDGET_MISMATCH.name, value=value, message=remark)


def network_bytes(cell: Cell) -> int:
    """Roughly the bytes of one network of ``cell`` and one step of it, without those of the process and its libraries.

    The sum has the weights and, with a backward pass, gradients and the optimiser's state. It also has the maps that
    are saved for the backward pass, at every position of every item of the batch. A forward pass alone holds those of
    one layer at a time.
    """
    family, spec = cell_family(cell), blocks.get(cell.block)
    features = [
        saved_features(part, cell.width)
        + (SAVED_PER_CONNECTION + SAVED_PER_GATE * spec.gates + spec.norms) * cell.width
        for part in family.sublayers
    ]
    backward = cell.phase != "forward"
    layers = cell.depth if backward else 1
    copies = 4 if backward else 1  # weights, gradients, momentum, and the starting weights that timing restores
    weights = copies * spec.stack_parameters(family, cell.width, cell.depth)
    numbers = weights + layers * sum(features) * cell.batch_size * positions_of(family, cell)
    return round(TORCH_DTYPES[cell.dtype].itemsize * numbers)


def saved_features(part: Transform, width: int) -> float:
    """Features that one transform computes at each position: its parameters, divided by the weights of one feature."""
    taps = TAPS if part.kind == "image" else 1
    return part.transform_parameters(width) / (width * taps)


def recipe_from(cell: Cell) -> Recipe:
    """How the cell's network is trained.

    Raises ``BadInput`` for a word that the task does not have, a value that a word cannot have, and the rate ``tuned``.
    """
    for word in cell.recipe:
        value_of(cell, word, None)
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("the rate 'tuned' is no number: it must be resolved before training")
    return Recipe(**{word: value for word, value in cell.recipe.items() if word in TRAINING})
