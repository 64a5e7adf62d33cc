"""How the layers of an untrained network respond to small changes of their input."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from torch import Tensor, nn

from highway_bench.analysis.conditioning import gains, jacobian, line_gradients, neighbour_correlation, spectrum
from highway_bench.tasks._layer_values import measurement
from highway_bench.tasks._probe import Probe, take_batch_statistics
from highway_bench.tasks.measurement import Measurement

EXACT = 128  # numbers an item: up to this size the whole Jacobian is computed
LINE = 32  # points on the line between two inputs


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
