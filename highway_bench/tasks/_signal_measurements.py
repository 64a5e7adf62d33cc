"""Signal and gradient of an untrained network, layer by layer: sizes, verdicts, correlations and gates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from torch import Tensor

from highway_bench.analysis.depth_scale import depth_scale
from highway_bench.analysis.gate_state import GateState, gate_state
from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.signal import departure, unpadded
from highway_bench.tasks._gated_layers import preactivations
from highway_bench.tasks._layer_values import measurement, profiled_layers
from highway_bench.tasks._probe import Probe
from highway_bench.tasks.measurement import Measurement


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
