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

from highway_bench.analysis.hooks import watching

Layer = Sequence[nn.Module]
State = Sequence[Tensor]

FACTOR = 100.0  # a size that leaves its start by more has vanished or exploded


@dataclass(frozen=True)
class SignalProfile:
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


def profile(
    layers: Sequence[Layer], loss: Callable[[], Tensor], items: int, real: Tensor | None = None
) -> SignalProfile:
    """One forward and one backward pass of ``loss``, a scalar, recorded at every layer; ``items`` are the batch's.

    Where inputs are padded, ``real`` (items, steps) says which steps are not: nothing else of a state counts.
    """
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
    by_state, by_layer = (
        [list(itertools.islice(gradients, len(part))) for part in parts] for parts in (traced, matrices)
    )
    counted, pulled = ([[unpadded(part, real) for part in state] for state in states] for states in (kept, by_state))
    return SignalProfile(sizes(counted), sizes(pulled), sizes(by_layer), likenesses(kept, items, real))


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


def unpadded(part: Tensor, real: Tensor | None) -> Tensor:
    """The numbers of ``part`` at the ``real`` steps, in one row; NaN where its steps are not to be told."""
    if real is None:
        return part
    places = _at_steps(part, real)
    return part.new_full((1,), math.nan) if places is None else part[places]


def likenesses(states: Sequence[State], items: int, real: Tensor | None = None) -> tuple[float, ...]:
    """Mean cosine ⟨x, x′⟩ / ‖x‖‖x′‖ of each item and the next one of the batch, for each state. Items that are all
    zeros do not count; of padded items those steps do that are ``real`` (items, steps) in both. NaN for a batch of one,
    and where the axis of the batch, or of the steps, is not to be told from the others."""
    both = None if real is None else real & real.roll(-1, 0)
    pairs = [[_pair(part, items, both) for part in state] for state in states]
    if items < 2 or not all(pairs) or any(pair is None for state in pairs for pair in state):
        return (math.nan,) * len(states)
    ones, others = ([[pair[side] for pair in state if pair is not None] for state in pairs] for side in (0, 1))
    found: list[float] = []
    for rows, next_rows in zip(alike(ones), alike(others), strict=True):
        found += cosines(rows, next_rows).nanmean(-1).tolist()
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


def _pair(part: Tensor, items: int, both: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """Every item's row, and the next item's beside it, with zeros where not ``both`` (items, steps) count."""
    rows = _by_item(part, items)
    if rows is None or both is None:
        return None if rows is None else (rows, rows.roll(-1, 0))
    places = _at_steps(part, both)
    counted = None if places is None else _by_item(places, items)
    return None if counted is None else (rows.where(counted, 0), rows.roll(-1, 0).where(counted, 0))


def _at_steps(part: Tensor, real: Tensor) -> Tensor | None:
    """``real`` (items, steps) for every number of ``part``; ``None`` where no neighbouring axes are of its shape."""
    for axis in range(part.ndim - 1):
        if part.shape[axis : axis + 2] == real.shape:
            return real.view(*real.shape, *(1 for _ in part.shape[axis + 2 :])).expand(part.shape)
    return None


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
