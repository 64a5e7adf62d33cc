"""Plain forms: how each connection is printed: its class, state and end, and the values of its starts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from torch import nn

from highway_bench.export.connections import (
    TorchAttentionResidual,
    TorchBranchScaled,
    TorchDeepNorm,
    TorchDenseAverage,
    TorchDepthAttention,
    TorchGatedRead,
    TorchGatedResidual,
    TorchGatedSum,
    TorchGruGate,
    TorchHighway,
    TorchHighwayFree,
    TorchHyperConnection,
    TorchKeel,
    TorchLaurelLr,
    TorchLayerScalar,
    TorchLayerScale,
    TorchMhc,
    TorchNormScaled,
    TorchOutputNorm,
    TorchPlain,
    TorchPostNorm,
    TorchPreNorm,
    TorchResidual,
    TorchReZero,
    TorchSandwichNorm,
    TorchX0Mix,
    logits_of,
)


class PlainForm(NamedTuple):
    """How a connection is printed: its class after the ``parts`` that it uses, the stack's first ``state`` of the input
    x, its module ``leave`` and the ``output`` of the last state, and by start what follows ``depth`` in the class's
    arguments. ``gain`` is the factor of each layer, where the connection has one."""

    cls: type[nn.Module]
    parts: tuple[Any, ...] = ()
    state: str = "x"
    leave: str = ""
    output: str = "state"
    arguments: Mapping[str, str] = MappingProxyType({})
    gain: str = ""


NORM: Final = "nn.LayerNorm(width)"


def normed(cls: type[nn.Module], arguments: Mapping[str, str] = MappingProxyType({})) -> PlainForm:
    """A connection of the stream with a norm after the last layer."""
    return PlainForm(cls, leave=NORM, output="self.leave(state)", arguments=arguments)


def with_history(cls: type[nn.Module], arguments: Mapping[str, str] = MappingProxyType({})) -> PlainForm:
    """A connection whose state begins with the stream, and has the input of the first layer too."""
    return PlainForm(cls, state="(x, x)", leave=NORM, output="self.leave(state[0])", arguments=arguments)


def of_streams(cls: type[nn.Module], leave: str, output: str, *parts: Any) -> PlainForm:
    """A connection of four streams, which start as copies of the input."""
    return PlainForm(cls, parts, "x.expand(4, *x.shape)", leave, output)


AT_DEPTH: Final = {"depth-aware": "-max(1.0, math.log(depth))", "published": "-2.0"}
GAINS: Final = {"published": "1.0", "depth-aware": "depth**-0.5"}
PLAIN: Final = {
    "plain": PlainForm(TorchPlain),
    "residual": PlainForm(TorchResidual),
    "pre-norm": normed(TorchPreNorm),
    "parallel": normed(TorchPreNorm),  # with one transform a layer
    "post-norm": PlainForm(TorchPostNorm),
    "highway": PlainForm(TorchHighway, arguments=AT_DEPTH),
    "highway-free": PlainForm(TorchHighwayFree, arguments=AT_DEPTH),
    "rezero": PlainForm(TorchReZero),
    "layerscale": normed(TorchLayerScale),
    "branch-scaled": normed(TorchBranchScaled),
    "deepnorm": PlainForm(TorchDeepNorm, gain="(4 * depth) ** -0.25"),
    "norm-scaled": normed(TorchNormScaled),
    "output-norm": normed(TorchOutputNorm, GAINS),
    "sandwich-norm": normed(TorchSandwichNorm, GAINS),
    "layer-scalar": normed(TorchLayerScalar, GAINS),
    "keel": PlainForm(TorchKeel),
    "gru-gate": PlainForm(TorchGruGate, arguments={"published": "2.0", "depth-aware": "max(2.0, math.log(depth))"}),
    "laurel-lr": normed(TorchLaurelLr),
    "x0-mix": with_history(TorchX0Mix, {"published": "False", "depth-aware": "True"}),
    "dense-average": with_history(TorchDenseAverage),
    "attn-residual": PlainForm(
        TorchAttentionResidual,
        (TorchDepthAttention,),
        state="[x]",
        leave=f"nn.Sequential(DepthAttention(width), {NORM})",
        output="self.leave(state)",
    ),
    "hc-dynamic": of_streams(TorchHyperConnection, NORM, "self.leave(state.sum(0))"),
    "mhc": of_streams(TorchMhc, "GatedSum(width)", "self.leave(state)", logits_of, TorchGatedSum),
    "gated-residual": of_streams(TorchGatedResidual, "GatedRead(width)", "self.leave(state)[1]", TorchGatedRead),
}
"""The plain form of each connection by its name."""
