"""A sequence's output read at its last step: layers must carry information from the other steps there."""

from __future__ import annotations

from torch import Tensor, nn

from highway_bench.architectures.base import Architecture, NetworkSpec, register_architecture
from highway_bench.network import Stage, check_depth
from highway_bench.stem_head import Incompatible, ScalarAnswer, linear, with_order


class LastStep(nn.Module):
    """(batch, steps, width) → (batch, width): the features of the last step."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, -1]


@register_architecture(
    "last-step",
    summary="a series' output, read at its last step",
    source="locuslab/TCN (arXiv:1803.01271), adding problem",
)
class AnswerAtLastStep(Architecture):
    """An affine map at every step, ``depth`` layers with the block, and an affine map of the last step's features.

    The usual head averages over steps. Layers that see one step at a time can then learn a sum over marked steps, the
    target of the adding problem, so the result says nothing about the range of a layer. When the output is read at the
    last step, the numbers must travel to it: through every step between in a recurrent layer, in one step by attention.
    At the last step, the backward direction of a bidirectional layer has seen only one step.
    """

    inputs = (400, 2)
    outputs = 1

    def network(self, spec: NetworkSpec) -> nn.Module:
        check_depth(spec.depth)
        if spec.family.kind != "sequence" or len(spec.inputs) != 2:
            raise Incompatible(
                f"the last-step architecture takes families of sequences on series, not {spec.family.name!r} on inputs "
                f"of shape {spec.inputs}"
            )
        steps, features = spec.inputs
        stem = with_order(linear(features, spec.width), spec.family, steps, spec.width)
        body = spec.body([Stage(spec.depth, spec.width)])
        squeeze = [ScalarAnswer()] if spec.outputs == 1 else []
        return nn.Sequential(stem, body, LastStep(), linear(spec.width, spec.outputs), *squeeze)
