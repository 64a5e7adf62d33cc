"""Preflight: a user's layer takes a few training steps before anything is measured.

What would fail in every cell is found in seconds: two layers train two steps and are evaluated, in a process of its own
as workers are, at the largest and the smallest size of each axis of a plan and with each of its connections, whose
states differ. It also looks whether the layer writes to its input at these sizes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks import blocks
from highway_bench.by_value import place_of
from highway_bench.cell import Cell
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.execution.failure import death, failure
from highway_bench.families.own_layer import Factory, own_layers
from highway_bench.families.probing import Watched
from highway_bench.matching import baseline
from highway_bench.measure.processes import ProcessDied, call_once
from highway_bench.os_names import SIGKILL
from highway_bench.plugins import modules_outside
from highway_bench.registry import load_plugin
from highway_bench.results.schema import Status
from highway_bench.tasks.from_cell import cell_dataset, cell_device, cell_dtype, cell_family, cell_stack
from highway_bench.training.evaluation import loss_of, to_device
from highway_bench.training.recipe import Recipe

SECONDS = 10.0  # after which no further network is tried
START = 300.0  # seconds that the process may take to start, and its last network
DEPTH = 2  # the least at which a connection gets another one's state
STEPS = 2
RATE = 1e-3
NOT_REACHED = "no gradient reaches any of its parameters, so it cannot be trained"

_passed: set[tuple[Cell, Factory]] = set()  # what ran in this process, with the factory of its layer


def preflight(cells: Iterable[Cell], plugins: Sequence[str] = ()) -> None:
    """Try the users' layers of ``cells`` that this process has not tried yet, in a process that imports ``plugins``.

    Raises ``BadInput``, in one line, for a layer that fails at a size or with a connection, that writes to its input
    without getting a copy, or that no gradient reaches. A lack of memory is none of these: it depends on the depth.
    """
    own = [cell for cell in cells if ":" in cell.family and "layout" not in cell.recipe]
    every = trials(own)
    chosen = [cell for cell in every if (cell, factory_of(cell)) not in _passed]
    if not chosen:
        return
    try:
        needed = dict.fromkeys((*plugins, *modules_outside(own)))
        fault = call_once(SECONDS + START, first_fault, chosen, tuple(needed))
    except TimeoutError:  # a cell has a timeout of its own
        return
    except ProcessDied as died:
        code = died.status
        if code is None or code >= 0 or -code == SIGKILL:  # it could not start, or memory ran out
            return
        fault = chosen[0], death(code)[1]
    if fault is not None:
        cell, message = fault
        place = place_of(factory_of(cell))
        which = "family" if blocks.get(cell.block).group != "own" else f"block {cell.block!r} in family"
        raise BadInput(f"{which} {cell.family!r} cannot be measured: {sizes_of(cell)}: {message} (layer: {place})")
    _passed.update((cell, factory_of(cell)) for cell in chosen)


def factory_of(cell: Cell) -> Factory:
    """What makes the layer of a cell of a user's family."""
    factory: Factory = cell_family(cell).factory  # type: ignore[attr-defined]
    return factory


def trials(cells: Iterable[Cell]) -> list[Cell]:
    """What is tried of ``cells``, in order: plain, the extreme sizes, then each connection at the smallest size."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        same = (cell.family, repr(cell.family_options), cell.dataset, repr(cell.recipe.get("dataset")))
        groups.setdefault((*same, cell.dtype, cell.device), []).append(cell)
    chosen: dict[Cell, None] = {}
    for group in groups.values():
        first = group[0]
        plain = first.but(block=baseline().name, block_options={}, start=None, width=first.nominal_width)
        chosen |= dict.fromkeys(small(one) for one in (plain, *extremes(group)))
    for group in groups.values():
        for cell in sorted(group, key=size):
            name = cell.block, repr(cell.block_options)
            if all((one.block, repr(one.block_options)) != name for one in chosen):
                chosen[small(cell)] = None
    return list(chosen)


def extremes(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells of the smallest and the largest value of each axis of size."""
    for axis in ("width", "batch_size", "seq_len"):
        values = [getattr(cell, axis) or 0 for cell in cells]
        for value in (min(values), max(values)):
            yield max((cell for cell in cells if (getattr(cell, axis) or 0) == value), key=size)


def size(cell: Cell) -> int:
    """How much a cell's layer computes, for an order."""
    return cell.width * cell.batch_size * (cell.seq_len or 1)


def small(cell: Cell) -> Cell:
    """What decides whether a few steps of a cell's layer run."""
    words = {word: value for word, value in cell.recipe.items() if word in ("dataset", "optimiser")}
    return cell.but(
        task="", depth=min(cell.depth, DEPTH), recipe=words, phase=None, mode="eager", trial=None, seed=0, threads=1
    )


def first_fault(cells: Sequence[Cell], plugins: Sequence[str]) -> tuple[Cell, str] | None:
    """The first of ``cells`` that fails, and why; ``None`` where all run, or time is up."""
    began = time.monotonic()
    with suppress(OSError):
        os.dup2(2, 1)  # stdout has the command's results
    torch.set_num_threads(cells[0].threads)
    for plugin in plugins:
        load_plugin(plugin)
    for cell in cells:
        try:
            message = fault(cell)
        except USER_ERRORS as error:
            status, message = failure(error)
            if status in (Status.SKIPPED, Status.OOM):
                continue
        if message is not None:
            return cell, message
        if time.monotonic() - began > SECONDS:
            break
    return None


def fault(cell: Cell) -> str | None:
    """What is wrong with a cell's layer in training and in evaluation, in words; raises what the layer raises."""
    family = cell_family(cell)
    if cell.dataset is None:
        refused = family.input_fault(cell.width, family.example_positions(cell.seq_len))
        if refused is not None:
            return refused
    network = cell_stack(cell)
    layers = own_layers(network)
    parameters = [one for layer in layers for one in layer.parameters()]
    if parameters and not any(one.requires_grad for one in parameters):
        return NOT_REACHED
    optimiser = Recipe(optimiser=cell.recipe.get("optimiser", "sgd"), rate=RATE, momentum=0.9).optimiser_for(network)
    reached = False
    with watched([] if cell.family_options.get("copy_input") else layers) as written:
        for _ in range(STEPS):
            optimiser.zero_grad(set_to_none=True)
            value = loss(cell, network)
            if value.requires_grad:
                value.backward()
            reached |= any(one.grad is not None and bool(one.grad.count_nonzero()) for one in parameters)
            optimiser.step()
        network.eval()
        with torch.no_grad():
            loss(cell, network)
    if written:
        return "it writes to its input, though not to that of every size: give --family-option copy_input=true"
    if parameters and cell.block == baseline().name and not reached:
        return NOT_REACHED
    return None


def loss(cell: Cell, network: nn.Module) -> Tensor:
    """The loss of one batch of the cell's data, or of a standard-normal input."""
    device, dtype = cell_device(cell), cell_dtype(cell)
    dataset = cell_dataset(cell)
    if dataset is None:
        example = cell_family(cell).example(cell.batch_size, cell.width, seq_len=cell.seq_len)
        y: Tensor = network(example.to(device, dtype))
        return y.square().mean()
    train = dataset.load(seed=0).train
    inputs, targets = (to_device(part[: cell.batch_size], device, dtype) for part in train)
    return loss_of(network(inputs), targets, dataset.target_kind)


@contextmanager
def watched(layers: Iterable[nn.Module]) -> Iterator[list[nn.Module]]:
    """Yields the list that gets those of ``layers`` that write to their first input while the context is open."""
    written: list[nn.Module] = []
    inputs: dict[nn.Module, Watched] = {}

    def before(layer: nn.Module, given: tuple[Any, ...]) -> None:
        inputs[layer] = Watched(given[0])

    def after(layer: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        if inputs.pop(layer).is_written():
            written.append(layer)

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_pre_hook(before))
            hooks.enter_context(layer.register_forward_hook(after))
        yield written


def sizes_of(cell: Cell) -> str:
    """Where a cell's layer stands, in words."""
    parts = [f"under {cell.block}", f"width {cell.width}", f"batch {cell.batch_size}"]
    parts += [f"length {cell.seq_len}"] if cell.seq_len else []
    parts += [f"on {cell.dataset}"] if cell.dataset else []
    return ", ".join(parts)
