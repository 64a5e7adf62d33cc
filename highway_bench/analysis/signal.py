"""Signal: sizes of activations and gradients layer by layer, the correlation of two inputs, and its depth scale.

Depends on modules and tensors only. A layer is a list of modules that run one after another. Its state is the input of
its first module or the output of its last one: a tensor, or any nesting of tensors. A size is the root mean square over
all numbers of a state; for a state of shape (batch, …, d) its square is the mean of ‖x‖²/d over positions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # a part of it is imported at its first use
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from highway_bench.analysis.hooks import forward_hooks
from highway_bench.measure.torch_internals import PYTREE

Layer = Sequence[nn.Module]
State = Sequence[Tensor]

FACTOR = 100.0  # a size that differs from the first one by more has vanished or exploded
LEAST_CHANGE = 0.05  # of the correlation over all layers: less is the noise of a finite width
LEAST_EXPLAINED = 0.9  # share of the variance of correlations by their depth scale


@dataclass(frozen=True)
class SignalProfile:
    """Sizes by layer. Entry l of ``activation``, ``gradient`` and ``correlation`` is the state after layer l, entry 0
    the first layer's input. Entry l of ``weight_gradient`` and ``change`` is layer l + 1. NaN where there is no such
    number."""

    activation: tuple[float, ...]  # RMS of x_l
    gradient: tuple[float, ...]  # RMS of dL/dx_l
    weight_gradient: tuple[float, ...]  # RMS of dL/dW_l over all weight matrices of the layer
    correlation: tuple[float, ...]  # mean cosine of each item's state and the next item's
    change: tuple[float, ...]  # ‖x_l − x_(l−1)‖ / ‖x_(l−1)‖; NaN for a state of several tensors


class Departure(NamedTuple):
    """The index at which a size first vanishes or explodes; both ``None`` where it never does."""

    vanishes: int | None = None
    explodes: int | None = None


def profile(
    layers: Sequence[Layer], loss: Callable[[], Tensor], items: int, real: Tensor | None = None
) -> SignalProfile:
    """One forward and one backward pass of ``loss``, a scalar, recorded at every layer; ``items`` are the batch's.

    Where inputs are padded, ``real`` (items, steps) marks the steps without padding; only these count.
    """
    tree = PYTREE.needed()
    traced: list[State] = []
    copies: list[State] = []

    def note(state: Any) -> None:
        leaves = [leaf for leaf in tree.tree_leaves(state) if isinstance(leaf, Tensor) and leaf.is_floating_point()]
        traced.append(leaves)
        copies.append([leaf.detach().clone() for leaf in leaves])  # a module may change its input in place

    def note_input(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        leaves_with_grad = tuple(tree.tree_map(_requiring_grad, inputs))
        note(leaves_with_grad)
        return leaves_with_grad

    last_modules = {index: layer[-1] for index, layer in enumerate(layers)}
    with (
        layers[0][0].register_forward_pre_hook(note_input),
        forward_hooks(last_modules, lambda _, __, output: note(output)),
    ):
        value = loss()
    matrices = [weights(layer) for layer in layers]
    wanted = [leaf for part in (*traced, *matrices) for leaf in part]
    gradients = iter(torch.autograd.grad(value, wanted, allow_unused=True, materialize_grads=True))
    by_state, by_layer = (
        [list(itertools.islice(gradients, len(part))) for part in parts] for parts in (traced, matrices)
    )
    counted, pulled = ([[unpadded(part, real) for part in state] for state in states] for states in (copies, by_state))
    similar = correlations(copies, items, real)
    return SignalProfile(sizes(counted), sizes(pulled), sizes(by_layer), similar, changes(counted))


def changes(states: Sequence[State]) -> tuple[float, ...]:
    """‖x_l − x_(l−1)‖ / ‖x_(l−1)‖ of each state after the first; NaN where the two are no tensors of one shape."""
    pairs = list(itertools.pairwise(states))
    same = [len(before) == len(after) == 1 and before[0].shape == after[0].shape for before, after in pairs]
    moved = [[after[0] - before[0]] if one else [] for (before, after), one in zip(pairs, same, strict=True)]
    starts = sizes(states)
    return tuple(move / start if start else math.nan for move, start in zip(sizes(moved), starts, strict=False))


def weights(layer: Layer) -> list[nn.Parameter]:
    """The layer's weight matrices and kernels: its parameters of two axes or more, each once."""
    by_id = {id(one): one for module in layer for one in module.parameters() if one.ndim > 1 and one.requires_grad}
    return list(by_id.values())


def sizes(states: Sequence[State]) -> tuple[float, ...]:
    """Root mean square of all numbers of each state; NaN where there are none. Sizes of 1e-200 and 1e200 are exact:
    squares are taken after scaling."""
    values: list[float] = []
    for rows in stacked_runs([[magnitudes(part).flatten() for part in state] for state in states]):
        largest = rows.abs().amax(-1)
        means = (rows / largest.unsqueeze(-1)).square().mean(-1).sqrt()
        values += torch.where(largest > 0, largest * means, largest).tolist()
    return tuple(values)


def magnitudes(part: Tensor) -> Tensor:
    """``part``, or the absolute values of complex numbers."""
    return part.abs() if part.is_complex() else part


def unpadded(part: Tensor, real: Tensor | None) -> Tensor:
    """The numbers of ``part`` at the ``real`` steps, flattened; NaN where no axes of ``part`` are its steps."""
    if real is None:
        return part
    counted = _at_steps(part, real)
    return part.new_full((1,), math.nan) if counted is None else part[counted]


def correlations(states: Sequence[State], items: int, real: Tensor | None = None) -> tuple[float, ...]:
    """Mean cosine ⟨x, x′⟩ / ‖x‖‖x′‖ of each item and the next one of the batch, for each state. Items that are all
    zeros do not count. Of padded items, only steps that are ``real`` (items, steps) in both count. NaN for a batch of
    one, and where the axis of the batch or of the steps is ambiguous."""
    both = None if real is None else real & real.roll(-1, 0)
    pairs = [[_pair(part, items, both) for part in state] for state in states]
    if items < 2 or not all(pairs) or any(pair is None for state in pairs for pair in state):
        return (math.nan,) * len(states)
    ones, others = ([[pair[side] for pair in state if pair is not None] for state in pairs] for side in (0, 1))
    means: list[float] = []
    for rows, next_rows in zip(stacked_runs(ones), stacked_runs(others), strict=True):
        means += cosines(rows, next_rows).nanmean(-1).tolist()
    return tuple(means)


def cosines(a: Tensor, b: Tensor) -> Tensor:
    """Cosine of each row of ``a`` with that of ``b``, (…, d) each, float64 (…); NaN where a row is all zeros. Rows are
    scaled first, so no square under- or overflows."""
    return (_unit(a) * _unit(b)).sum(-1)


def departure(sizes: Sequence[float], factor: float = FACTOR) -> Departure:
    """The first index at which a size is below the first size / ``factor`` (vanished), or above ``factor`` times it or
    not finite (exploded). A first size of 0 has vanished already."""
    start = sizes[0]
    for index, value in enumerate(sizes):
        if not math.isfinite(value) or value > factor * start:
            return Departure(explodes=index)
        if value == 0 or value < start / factor:
            return Departure(vanishes=index)
    return Departure()


def depth_scale(correlation: Sequence[float]) -> float | None:
    """ξ, in layers, of the least-squares fit c_l = c* + a·exp(−l/ξ) to the correlations by layer (arXiv:1611.01232).

    ``None`` where no exponential approach is visible: fewer than five layers, values that are not finite, a total
    change below 0.05, a fit that leaves more than a tenth of the variance unexplained, a scale beyond the depth, or a
    fixed point c* outside [−1, 1]. Where c approaches its fixed point as a power of l, as for ReLU at its critical
    init, ξ only describes the measured layers.
    """
    values: NDArray[np.float64] = np.asarray(correlation, dtype=np.float64)
    depth = len(values) - 1
    if depth < 5 or not np.isfinite(values).all() or np.ptp(values) < LEAST_CHANGE:
        return None
    layers = np.arange(depth + 1, dtype=np.float64)
    start = (float(values[-1]), float(values[0] - values[-1]), depth / 4)
    bounds = ((-3.0, -4.0, 0.05), (3.0, 4.0, 10.0 * depth))  # lets a straight line fit with a scale beyond the depth
    start = tuple(np.clip(start, bounds[0], bounds[1]))
    try:
        fitted, _ = scipy.optimize.curve_fit(_decaying, layers, values, p0=start, bounds=bounds)
    except RuntimeError:  # no convergence: the correlations do not follow an exponential
        return None
    residual = values - _decaying(layers, *fitted)
    explained = 1 - residual.var() / values.var()
    fixed_point, scale = float(fitted[0]), float(fitted[2])
    return scale if explained >= LEAST_EXPLAINED and scale <= depth and abs(fixed_point) <= 1 + LEAST_CHANGE else None


def _decaying(layer: NDArray[np.float64], fixed_point: float, amplitude: float, scale: float) -> NDArray[np.float64]:
    curve: NDArray[np.float64] = fixed_point + amplitude * np.exp(-layer / scale)
    return curve


def stacked_runs(states: Sequence[State]) -> Iterator[Tensor]:
    """The states in float64, stacked in runs of equal shape: (n, …, d). The parts of a state are concatenated on the
    last axis. One operation then covers a whole run."""
    concatenated = [_concatenated(state).detach().double() for state in states]
    for _, run in itertools.groupby(concatenated, key=lambda one: (one.shape, one.device)):
        yield torch.stack(list(run))


def _concatenated(state: State) -> Tensor:
    if not state:
        return torch.full((1,), math.nan)
    return state[0] if len(state) == 1 else torch.cat(list(state), dim=-1)


def _requiring_grad(leaf: Any) -> Any:
    """``leaf``, made to require a gradient: the first layer's input may not."""
    if isinstance(leaf, Tensor) and leaf.is_floating_point() and not leaf.requires_grad:
        return leaf.detach().requires_grad_()
    return leaf


def _pair(part: Tensor, items: int, both: Tensor | None) -> tuple[Tensor, Tensor] | None:
    """Every item's row and the next item's row, with zeros at steps where ``both`` (items, steps) is false."""
    rows = _by_item(part, items)
    if rows is None or both is None:
        return None if rows is None else (rows, rows.roll(-1, 0))
    mask = _at_steps(part, both)
    counted = None if mask is None else _by_item(mask, items)
    return None if counted is None else (rows.where(counted, 0), rows.roll(-1, 0).where(counted, 0))


def _at_steps(part: Tensor, real: Tensor) -> Tensor | None:
    """``real`` (items, steps) for every number of ``part``; ``None`` where no neighbouring axes are of its shape."""
    for axis in range(part.ndim - 1):
        if part.shape[axis : axis + 2] == real.shape:
            return real.view(*real.shape, *(1 for _ in part.shape[axis + 2 :])).expand(part.shape)
    return None


def _by_item(part: Tensor, items: int) -> Tensor | None:
    """``part`` as rows (items, …). The batch axis is the first axis if that has ``items`` entries, else the only axis
    that has; ``None`` if there is no such axis."""
    axes = [axis for axis, size in enumerate(part.shape) if size == items]
    if not axes or (axes[0] != 0 and len(axes) > 1):
        return None
    return part.movedim(axes[0], 0).flatten(1)


def _unit(rows: Tensor) -> Tensor:
    scaled = rows.detach().double()
    scaled = scaled / scaled.abs().amax(-1, keepdim=True)  # before squaring, since the square of 1e-200 is 0
    unit: Tensor = scaled / scaled.norm(dim=-1, keepdim=True)
    return unit
