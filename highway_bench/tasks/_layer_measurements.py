"""Measurements of a network layer by layer: sizes and verdicts, responses to small changes, updates, depth mixing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from highway_bench.analysis.conditioning import gains, jacobian, line_gradients, neighbour_correlation, spectrum
from highway_bench.analysis.gate_statistics import GateState, gate_state
from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.mixing import branch_of, depth_mixing
from highway_bench.analysis.signal import FACTOR, Layer, departure, depth_scale, magnitudes, unpadded, weights
from highway_bench.network import Stack, unpadded_steps
from highway_bench.results.schema import Status
from highway_bench.tasks._gated_layers import preactivations
from highway_bench.tasks._probe import Probe, take_batch_statistics
from highway_bench.tasks.measurement import Measurement
from highway_bench.training.evaluation import device_and_dtype, to_device
from highway_bench.training.loop import Training

PROFILE_POINTS = 10  # at most this many layers of a profile are stored, equally spaced, besides the first
EXACT = 128  # numbers an item: up to this size the whole Jacobian is computed
LINE = 32  # points on the line between two inputs
ITEMS = 32
MOST = 100  # connections: the time grows with their square


def profiled_layers(depth: int, first: int = 0) -> list[int]:
    """The layers whose values are stored: ``first``, ``depth``, and the multiples of a step between them, at most
    ``PROFILE_POINTS`` + 1 in all."""
    step = math.ceil(depth / PROFILE_POINTS)
    return sorted({first, *range(step, depth, step), depth})


def measurement(metric: str, value: float, layer: int | None = None) -> Measurement:
    """A value of the network or of one layer. One that is not finite becomes ``None``, and the message has it."""
    finite = math.isfinite(value)
    return Measurement(
        metric=metric,
        value=value if finite else None,
        axis="" if layer is None else "layer",
        index=layer or 0,
        message=None if finite else f"{metric} is {value:g}",
    )


def signal_measurements(work: Probe) -> Iterator[Measurement]:
    """From one forward and backward pass: sizes of signal and gradient, their verdicts, correlations and gates."""
    depth, gated = len(work.layers), work.gated_maps()
    gates: list[list[GateState]] = [[] for _ in work.layers]
    layer_of = [layer for layer, parts in enumerate(gated) for _ in parts]
    maps = dict(enumerate(part for parts in gated for part in parts))

    def note(key: int, _: Tensor, output: Tensor | tuple[Tensor, ...]) -> None:
        gates[layer_of[key]].append(gate_state([unpadded(gate, work.real) for gate in preactivations(output)]))

    with forward_hooks(maps, note):
        profile = work.profile()
    yield measurement("activation_ratio", quotient(profile.activation[-1], profile.activation[0]))
    yield measurement("gradient_ratio", quotient(profile.gradient[0], profile.gradient[-1]))
    yield measurement("stream_change", fmean(profile.change))
    yield measurement("weight_gradient_ratio", quotient(profile.weight_gradient[0], profile.weight_gradient[-1]))
    signal, gradient = departure(profile.activation), departure(profile.gradient[::-1])
    for way in ("vanishes", "explodes"):
        above = getattr(gradient, way)  # counted from the last layer, where the gradient starts
        yield Measurement(metric=f"signal_{way}_at", value=getattr(signal, way))
        yield Measurement(metric=f"gradient_{way}_at", value=None if above is None else depth - above)
    scale = depth_scale(profile.correlation)
    message = None if scale else "the correlation shows no exponential decay"
    yield Measurement(metric="depth_scale", value=scale, message=message)
    for layer in profiled_layers(depth):
        yield measurement("activation", profile.activation[layer], layer)
        yield measurement("gradient", profile.gradient[layer], layer)
        yield measurement("correlation", profile.correlation[layer], layer)
    for layer in profiled_layers(depth, 1):
        yield measurement("weight_gradient", profile.weight_gradient[layer - 1], layer)
    yield from gate_measurements([state for states in gates for state in states])
    for layer in profiled_layers(depth, 1):
        yield from gate_measurements(gates[layer - 1], layer)


def gate_measurements(states: Sequence[GateState], layer: int | None = None) -> Iterator[Measurement]:
    """The mean of the first gate (a highway's T), the sum of all gates' means where there are several (T + C of a free
    carry gate), and the saturated share."""
    if states:
        yield measurement("gate_mean", fmean(state.means[0] for state in states), layer)
        if len(states[0].means) > 1:
            yield measurement("gate_sum", fmean(sum(state.means) for state in states), layer)
        yield measurement("gate_saturation", fmean(state.saturated for state in states), layer)


def quotient(value: float, start: float) -> float:
    """``value`` divided by ``start``; NaN where ``start`` is 0."""
    return value / start if start else math.nan


def jacobian_measurements(work: Probe) -> Iterator[Measurement]:
    """How the layers respond to small changes: the Jacobian dx_L/dx₀, and gradients along the line between two inputs.

    Both are computed in evaluation mode, where the items of a batch do not affect each other; batch norms divide by
    this batch's statistics. Padded items are cut to their lengths, and the two items of the line to the shorter one.
    """
    x = work.stream()
    take_batch_statistics(work.network, work.inputs)
    evaluation_mode(work.network)
    parts = work.unpadded_parts(x)
    if max(part[0].numel() for part in parts) <= EXACT:
        yield from spectrum_measurements(jacobian(work.last_stream, parts[0][:1]))
    else:
        each_gain = (gain for part in parts for gain in gains(work.last_stream, part, work.generator))
        yield measurement("jacobian_gain", fmean(each_gain))
    if len(x) > 1:
        start, end = x[:2] if work.real is None else x[:2, : min(part.shape[1] for part in parts[:2])]
        line = line_gradients(work.last_stream, start, end, LINE, work.generator)
        yield measurement("gradient_correlation", neighbour_correlation(line))
    work.network.train()


def evaluation_mode(network: nn.Module) -> None:
    """Put ``network`` into evaluation mode, except recurrent modules without dropout: these give equal numbers in both
    modes, and cuDNN computes their gradients in training mode only."""
    network.eval()
    for part in network.modules():
        if isinstance(part, nn.RNNBase) and part.dropout == 0:
            part.train()


def spectrum_measurements(matrix: Tensor) -> Iterator[Measurement]:
    """Singular values of one item's Jacobian, and their mean square."""
    singular = spectrum(matrix)
    if singular is None:
        for name in ("largest", "smallest", "spread", "rank", "gain"):
            yield Measurement(metric=f"jacobian_{name}", value=None, message="the Jacobian is not finite")
        return
    yield measurement("jacobian_largest", singular.largest)
    yield measurement("jacobian_smallest", singular.smallest)
    yield Measurement(
        metric="jacobian_spread",
        value=singular.spread,
        message=None if singular.spread is not None else f"singular: rank {singular.rank} of {singular.size}",
    )
    yield measurement("jacobian_rank", singular.rank)
    yield measurement("jacobian_gain", singular.mean_square)


def update_measurements(layers: Sequence[Layer], training: Training) -> Iterator[Measurement]:
    """Train, then give ‖ΔW‖/‖W‖ of every layer over the recipe's steps, and which layers stand still."""
    matrices = [weights(layer) for layer in layers]
    before = [[weight.detach().clone() for weight in layer] for layer in matrices]
    training.run()
    losses = training.history()
    finite = math.isfinite(losses[-1])
    status = Status.OK if finite else Status.DIVERGED
    message = None if finite else f"the loss was not finite at step {len(losses)}"
    moved = [movement(old, new) for old, new in zip(before, matrices, strict=True)]
    known = finite and all(map(math.isfinite, moved))
    still = [layer for layer, value in enumerate(moved, start=1) if value < max(moved) / FACTOR] if known else []
    values = {
        "still_layers": len(still) if known else None,
        "still_first": min(still, default=None),
        "still_last": max(still, default=None),
    }
    for metric, value in values.items():
        yield Measurement(metric=metric, value=value, status=status, message=message)
    for layer in profiled_layers(len(layers), 1):
        yield replace(measurement("update", moved[layer - 1], layer), status=status, message=message)


@torch.no_grad()
def movement(before: Sequence[Tensor], after: Sequence[Tensor]) -> float:
    """‖ΔW‖/‖W‖ in the Euclidean norm over all matrices of a layer; NaN for a layer without matrices."""
    changed = sum(float(magnitudes(new - old).double().square().sum()) for old, new in zip(before, after, strict=True))
    started = sum(float(magnitudes(old).double().square().sum()) for old in before)
    return math.sqrt(changed / started) if started else math.nan


def mixing_measurements(network: nn.Module, inputs: Tensor, when: Literal["start", "end"]) -> Iterator[Measurement]:
    """The rows of the mixing matrix and of the shares by layer. ``samples`` are one row: v₀, then branch by branch.

    Nothing for a network of several stacks or of more than ``MOST`` connections, and for a block without a known
    branch.
    """
    stacks = [part for part in network.modules() if isinstance(part, Stack)]
    if len(stacks) != 1 or len(stacks[0].joins) > MOST or None in map(branch_of, stacks[0].joins):
        return
    batch = to_device(inputs[:ITEMS], *device_and_dtype(network))
    if when == "start":
        take_batch_statistics(network, batch)
    network.eval()
    mixing = depth_mixing(stacks[0], lambda: network(batch), unpadded_steps(network, batch))
    for metric, rows in ((f"mixing_{when}", mixing.weights), (f"mixing_share_{when}", mixing.shares)):
        for layer in profiled_layers(len(rows), 1):
            yield row_measurement(metric, rows[layer - 1], layer)


def row_measurement(metric: str, row: list[float], layer: int) -> Measurement:
    """One row of a matrix as samples; numbers that are not finite become null, without failing the cell."""
    finite = [value for value in row if math.isfinite(value)]
    low, middle, high = np.quantile(finite, (0.1, 0.5, 0.9)).tolist() if finite else (None, None, None)
    samples = [value if math.isfinite(value) else None for value in row]
    return Measurement(metric=metric, value=middle, low=low, high=high, samples=samples, axis="layer", index=layer)
