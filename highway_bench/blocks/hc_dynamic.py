"""Hyper-connections: several streams with learned reading, writing and mixing weights."""

from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import Copies, SumThen, carried, final_norm, strided
from highway_bench.blocks.base import SCALED_BRANCH, Block, Start, register_block, register_variant
from highway_bench.families import Family, Site

STREAMS = 4
FIRST_SCALE = 0.01  # of the part of a weight that depends on the input


def _static(family: Family, width: int, joins: int) -> int:
    return joins * (STREAMS**2 + 2 * STREAMS)


def _dynamic(family: Family, width: int, joins: int) -> int:
    return _static(family, width, joins) + joins * (width * (STREAMS + 3) + 2)


def _mixing(family: Family, width: int, joins: int) -> int:
    return joins * 2 * width * STREAMS**2


def _mixing_and_maps(family: Family, width: int, joins: int) -> int:
    return _mixing(family, width, joins) + joins * 2 * width * STREAMS * (STREAMS + 2)


@register_block(
    "hc-dynamic",
    equation="h = A_mᵀ X, X′ = A_rᵀ X + Bᵀ H(norm(h)), the sum of the streams and a norm after the last layer",
    source="arXiv:2409.19606, eq. 1 to 14",
    summary="four streams, weights by input",
    norms=1,
    leave_norms=1,
    extra_parameters=_dynamic,
    extra_flops=_mixing_and_maps,
    starts=(Start("published", "one stream is read, all are written, none is mixed"), SCALED_BRANCH),
    evidence="paper",
    init_state="base",
    group="modern",
    order=20,
)
class HyperConnection(Block):
    """h = A_mᵀ X and X′ = A_rᵀ X + Bᵀ H(norm(h)) for streams X (4, …), which start as copies of the input.

    ``dynamic`` adds to each static weight s · tanh(W rms(x)), by stream and position, with s = 0.01 and W = 0 at first.
    Connection l reads stream l mod 4 at first, writes to all, and mixes none, so a stack equals ``pre-norm`` there. The
    paper also rescales the branch's last map by √4 in a direction that it leaves open; this is left out.
    """

    def __init__(self, site: Site, *, dynamic: bool = True) -> None:
        super().__init__()
        family = site.family
        self.norm = family.norm(site.in_width)
        self.transform = family.transform(site)
        self.carry = family.carry(site)
        self.axis, self.stride = family.feature_axis, site.stride
        self.mixing = "sbt...,sbd...->tbd..." if family.kind == "image" else "s...t,s...d->t...d"
        self.read = nn.Parameter(torch.eye(STREAMS)[(site.index - 1) % STREAMS].clone())
        self.write = nn.Parameter(torch.ones(STREAMS))
        self.mix = nn.Parameter(torch.eye(STREAMS).flatten())  # a vector, so that it does not decay
        self.rms = family.rms(site.in_width) if dynamic else None
        if dynamic:
            self.weights = family.affine(site.in_width, STREAMS + 2, bias=False)
            nn.init.zeros_(self.weights.weight)  # type: ignore[arg-type]
            self.read_scale = nn.Parameter(torch.tensor(FIRST_SCALE))
            self.write_scale = nn.Parameter(torch.tensor(FIRST_SCALE))

    def forward(self, streams: Tensor) -> Tensor:
        read, write, mix = self.read_write_mix(streams)
        branch = self.transform(self.norm((read * streams).sum(0)))
        write, mix = strided(write, self.stride), strided(mix, self.stride)
        mixed: Tensor = torch.einsum(self.mixing, mix, carried(self.carry, streams))
        written: Tensor = mixed + write * branch
        return written

    def read_write_mix(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A_m and B, one number a stream and position, and A_r with its columns on the feature axis."""
        one = [STREAMS] + [1] * (streams.ndim - 1)
        several = [*one]
        several[self.axis] = STREAMS
        read, write, mix = self.read.view(one), self.write.view(one), self.mix.view(several)
        if self.rms is None:
            return read, write, mix.expand(STREAMS, *self.stretched(streams))
        made = torch.tanh(self.weights(self.rms(streams).flatten(0, 1))).unflatten(0, streams.shape[:2])
        by_read, by_write, by_mix = made.split((1, 1, STREAMS), self.axis)
        return (
            read + self.read_scale * by_read,
            write + self.write_scale * by_write,
            mix + self.read_scale * by_mix,
        )

    def stretched(self, streams: Tensor) -> list[int]:
        """The shape of one stream's row of A_r at every position."""
        shape = list(streams.shape[1:])
        shape[self.axis] = STREAMS
        return shape

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Copies(STREAMS)

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return SumThen(final_norm(site))


register_variant(
    "hc-static",
    HyperConnection,
    summary="four streams, learned weights",
    about={"group": "control", "extra_parameters": _static, "extra_flops": _mixing},
    dynamic=False,
)
