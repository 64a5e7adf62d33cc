"""A sequence's one answer read at its last step, so that a layer has to bring there what the others knew."""

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
    summary="a series' answer, read at its last step",
    source="locuslab/TCN (arXiv:1803.01271), adding problem",
)
class AnswerAtLastStep(Architecture):
    """An affine map at every step, ``depth`` joined layers, and an affine map of the last step's features.

    The usual head averages over steps. A sum over marked steps, which is what the adding problem asks for, is then
    learnt by layers that look at one step at a time, and says nothing of how far a layer reaches. Read at the last
    step, the numbers must travel: through every step between in a recurrent layer, in one step by attention. The
    backward direction of a bidirectional layer has seen one step of the sequence there.
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
        answer = [ScalarAnswer()] if outputs == 1 else []
        return nn.Sequential(stem, body, LastStep(), linear(width, outputs), *answer)
