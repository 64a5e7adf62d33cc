"""A sequence's output read at its last step: layers must carry information from the other steps there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from highway_bench.architectures.base import Architecture, register_architecture
from highway_bench.blocks import BlockSpec
from highway_bench.errors import BadInput
from highway_bench.families import Family
from highway_bench.network import Stage, build_body, check_depth
from highway_bench.stem_head import ScalarAnswer, linear, with_order


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
    """An affine map at every step, ``depth`` joined layers, and an affine map of the last step's features.

    The usual head averages over steps. Layers that see one step at a time can then learn a sum over marked steps, the
    target of the adding problem, so the result says nothing about the range of a layer. When the output is read at the
    last step, the numbers must travel to it: through every step between in a recurrent layer, in one step by attention.
    At the last step, the backward direction of a bidirectional layer has seen only one step.
    """

    inputs = (400, 2)
    outputs = 1

    def network(
        self,
        spec: BlockSpec,
        family: Family,
        *,
        width: int,
        depth: int,
        options: Mapping[str, Any],
        inputs: tuple[int, ...],
        outputs: int,
    ) -> nn.Module:
        check_depth(depth)
        if family.kind != "sequence" or len(inputs) != 2:
            raise BadInput(
                f"the last-step architecture takes families of sequences on series, not {family.name!r} on inputs "
                f"of shape {inputs}"
            )
        steps, features = inputs
        stem = with_order(linear(features, width), family, steps, width)
        body = build_body(spec, family, [Stage(depth, width)], "plain", options)
        squeeze = [ScalarAnswer()] if outputs == 1 else []
        return nn.Sequential(stem, body, LastStep(), linear(width, outputs), *squeeze)
