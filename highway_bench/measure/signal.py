"""Signal: how large what travels through layers is, forwards and backwards, and how alike two inputs stay.

Knows modules and tensors only. A layer is a list of modules that run one after another; what its first module takes and
its last one gives is the layer's state: a tensor, or any nesting of tensors. Sizes are root mean squares over all
numbers of a state, so that for one of shape (batch, …, d) their square is E‖x‖²/d at each position.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from highway_bench.measure.watch import watching

Layer = Sequence[nn.Module]
State = Sequence[Tensor]

FACTOR = 100.0  # a size that leaves its start by more has vanished or exploded


@dataclass(frozen=True)
class Profile:
    """Sizes by layer. Place l of ``activation``, ``gradient`` and ``correlation`` is the state after layer l, 0 the
    first layer's input; place l of ``weight_gradient`` is layer l + 1. NaN where there is no such number."""

    activation: tuple[float, ...]  # RMS of x_l
    gradient: tuple[float, ...]  # RMS of dL/dx_l
    weight_gradient: tuple[float, ...]  # RMS of dL/dW_l over all weight matrices of the layer
    correlation: tuple[float, ...]  # mean cosine of each item's state and the next item's


class Departure(NamedTuple):
    """Where a size first leaves its start by more than a factor, and which way; both ``None`` where it never does."""

    vanishes: int | None = None
    explodes: int | None = None


def profile(layers: Sequence[Layer], loss: Callable[[], Tensor], items: int) -> Profile:
    """One forward and one backward pass of ``loss``, a scalar, recorded at every layer; ``items`` are the batch's."""
    traced: list[State] = []
    kept: list[State] = []

    def note(state: Any) -> None:
        leaves = [leaf for leaf in tree_leaves(state) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
        traced.append(leaves)
        kept.append([leaf.detach().clone() for leaf in leaves])  # a module may change its input in place

    def note_input(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        reached = tuple(tree_map(_reached, inputs))
        note(reached)
        return reached

    ends = {place: layer[-1] for place, layer in enumerate(layers)}
    with layers[0][0].register_forward_pre_hook(note_input), watching(ends, lambda _, __, output: note(output)):
        value = loss()
    matrices = [weights(layer) for layer in layers]
    asked = [leaf for part in (*traced, *matrices) for leaf in part]
    gradients = iter(torch.autograd.grad(value, asked, allow_unused=True, materialize_grads=True))
    by_state, by_layer = ([list(itertools.islice(gradients, len(part))) for part in parts]
                          for parts in (traced, matrices))
    return Profile(sizes(kept), sizes(by_state), sizes(by_layer), likenesses(kept, items))


def weights(layer: Layer) -> list[nn.Parameter]:
    """The layer's weight matrices and kernels: its parameters of two axes or more, each once."""
    found = {id(one): one for module in layer for one in module.parameters() if one.ndim > 1 and one.requires_grad}
    return list(found.values())


def sizes(states: Sequence[State]) -> tuple[float, ...]:
    """Root mean square of all numbers of each state; NaN where there are none. Neither 1e-200 nor 1e200 is lost to the
    square."""
    found: list[float] = []
    for rows in alike([[part.flatten() for part in state] for state in states]):
        largest = rows.abs().amax(-1)
        means = (rows / largest.unsqueeze(-1)).square().mean(-1).sqrt()
        found += torch.where(largest > 0, largest * means, largest).tolist()
    return tuple(found)


def likenesses(states: Sequence[State], items: int) -> tuple[float, ...]:
    """Mean cosine ⟨x, x′⟩ / ‖x‖‖x′‖ of each item and the next one of the batch, for each state. Items that are all
    zeros do not count; NaN for a batch of one, and where the batch's axis is not to be told from the others."""
    by_item = [[_by_item(part, items) for part in state] for state in states]
    if items < 2 or not all(by_item) or any(part is None for state in by_item for part in state):
        return (math.nan,) * len(states)
    found: list[float] = []
    for rows in alike([[part for part in state if part is not None] for state in by_item]):
        found += cosines(rows, rows.roll(-1, -2)).nanmean(-1).tolist()
    return tuple(found)


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of each row of ``a`` with that of ``b``, (…, d) each, float64 (…); NaN where a row is all zeros. Rows may
    be of any size."""
    return (_unit(a) * _unit(b)).sum(-1)


def departure(sizes: Sequence[float], factor: float = FACTOR) -> Departure:
    """The first place at which a size is less than the first over ``factor``, or more than ``factor`` times it, or no
    finite number (it then has exploded). A first size of 0 has vanished already."""
    start = sizes[0]
    for place, value in enumerate(sizes):
        if not math.isfinite(value) or value > factor * start:
            return Departure(explodes=place)
        if value == 0 or value < start / factor:
            return Departure(vanishes=place)
    return Departure()


def alike(states: Sequence[State]) -> Iterator[Tensor]:
    """The states, each one's parts joined on the last axis, stacked in runs of equal shape, float64: (n, …, d). One
    operation then does for a whole run."""
    joined = [_joined(state).detach().double() for state in states]
    for _, run in itertools.groupby(joined, key=lambda one: (one.shape, one.device)):
        yield torch.stack(list(run))


def _joined(state: State) -> Tensor:
    if not state:
        return torch.full((1,), math.nan)
    return state[0] if len(state) == 1 else torch.cat(list(state), dim=-1)


def _reached(leaf: Any) -> Any:
    """A tensor that gradients reach: the first layer's input need not be one."""
    if isinstance(leaf, Tensor) and leaf.is_floating_point() and not leaf.requires_grad:
        return leaf.detach().requires_grad_()
    return leaf


def _by_item(part: Tensor, items: int) -> Tensor | None:
    """(items, …) as rows: the first axis if it has so many places, else the only axis that does."""
    axes = [axis for axis, places in enumerate(part.shape) if places == items]
    if not axes or (axes[0] != 0 and len(axes) > 1):
        return None
    return part.movedim(axes[0], 0).flatten(1)


def _unit(rows: Tensor) -> Tensor:
    scaled = rows.detach().double()
    scaled = scaled / scaled.abs().amax(-1, keepdim=True)  # first, for squares of 1e-200 would be 0
    unit: Tensor = scaled / scaled.norm(dim=-1, keepdim=True)
    return unit
