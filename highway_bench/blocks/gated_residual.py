"""Gated residual: four streams that are never mixed, read by low-rank gates and written with weights by position."""

from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import Copies, carried, strided
from highway_bench.blocks.base import SCALED_BRANCH, Block, Start, register_block
from highway_bench.families import Family, Site
from highway_bench.families.parts import along, inverse_rms

STREAMS = 4
REDUCTION = 8  # the width over the rank of a read's gates
SPREAD = 0.02  # standard deviation of the first maps


def rank_of(width: int) -> int:
    """The rank of a read's gates."""
    return max(1, width // REDUCTION)


def _gate_weights(width: int) -> int:
    """Weights of the two maps of one read."""
    return 2 * STREAMS * width * rank_of(width)


def _parameters(family: Family, width: int, joins: int) -> int:
    read = _gate_weights(width) + STREAMS * width
    return (joins + 1) * read + joins * STREAMS * width * STREAMS


def _flops(family: Family, width: int, joins: int) -> int:
    return 2 * ((joins + 1) * _gate_weights(width) + joins * STREAMS * width * STREAMS)


@register_block(
    "gated-residual",
    equation="x′_s = x_s + w_s H(h), u_s = (1 + γ_s)·rms(x_s), h = mean_s σ(W_up silu(W_dn u/4))_s·u_s, "
    "w = 2σ(W_inj u/4), one more h after the last layer",
    source="Qwen4-Exp; huggingface/transformers",
    summary="four streams, gated read, none mixed",
    extra_parameters=_parameters,
    extra_flops=_flops,
    starts=(Start("published", "γ = 0, small random maps"), SCALED_BRANCH),
    evidence="code",
    group="modern",
    order=24,
)
class GatedResidual(Block):
    """x′_s = x_s + w_s H(h) for streams X (4, …), which start as copies of the input and are not mixed.

    h is a gated mean of the normalised streams (see ``GatedRead``), which H reads without a further norm. The weights
    w = 2σ(W_inj u/4), (4, …), are by position, and W_inj has no bias. All maps are normal with standard deviation 0.02
    at first: with W_inj = 0 the streams would stay equal for ever. Another read after the last layer gives the output.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        family = site.family
        self.read = GatedRead(family, site.in_width)
        self.inject = normal_map(family, STREAMS * site.in_width, STREAMS)
        self.transform = family.transform(site)
        self.carry = family.carry(site)
        self.axis, self.stride = family.feature_axis, site.stride

    def forward(self, streams: Tensor) -> Tensor:
        u, h = self.read(streams)
        write = strided(2 * torch.sigmoid(self.inject(u / STREAMS)), self.stride).movedim(self.axis, 0)
        written: Tensor = carried(self.carry, streams) + write.unsqueeze(self.axis) * self.transform(h)
        return written

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Copies(STREAMS)

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return LastRead(site.family, site.width)


class GatedRead(nn.Module):
    """Streams X (4, …, d, …) → u (…, 4d, …) and h (…, d, …).

    u_s = (1 + γ_s) x_s / rms(x_s), the streams side by side; h = mean_s g_s u_s with g = σ(W_up silu(W_dn u/4)), of the
    rank d/8.
    """

    def __init__(self, family: Family, features: int) -> None:
        super().__init__()
        self.axis = family.feature_axis
        self.gain = nn.Parameter(torch.zeros(STREAMS * features))  # γ
        self.down = normal_map(family, STREAMS * features, rank_of(features))
        self.up = normal_map(family, rank_of(features), STREAMS * features)

    def forward(self, streams: Tensor) -> tuple[Tensor, Tensor]:
        normed = streams * inverse_rms(streams, self.axis)
        u = torch.cat(normed.unbind(0), dim=self.axis) * along(1 + self.gain, self.axis)
        gates = torch.sigmoid(self.up(nn.functional.silu(self.down(u / STREAMS))))
        return u, (gates * u).unflatten(self.axis, (STREAMS, -1)).mean(self.axis - 1)


class LastRead(nn.Module):
    """Streams X (4, …) → h."""

    def __init__(self, family: Family, features: int) -> None:
        super().__init__()
        self.read = GatedRead(family, features)

    def forward(self, streams: Tensor) -> Tensor:
        h: Tensor = self.read(streams)[1]
        return h


def normal_map(family: Family, inputs: int, outputs: int) -> nn.Module:
    """A position-wise map without bias whose weights are normal."""
    module = family.affine(inputs, outputs, bias=False)
    nn.init.normal_(module.weight, std=SPREAD)  # type: ignore[arg-type]
    return module
