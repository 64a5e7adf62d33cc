"""Manifold-constrained hyper-connections: streams are mixed by doubly stochastic matrices."""

import itertools
import math
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from highway_bench.blocks._parts import Copies, carried, final_norm, strided
from highway_bench.blocks.base import SCALED_BRANCH, Block, Start, register_block, register_variant
from highway_bench.errors import BadInput
from highway_bench.families import Family, Site
from highway_bench.families.parts import inverse_rms

STREAMS = 4
ITERATIONS = 20
EPS = 1e-6
SCALE, SPREAD = 0.01, 0.02  # the first a, and the standard deviation of the first P
FAR = -8.0  # logit of what is almost absent at the start

Mixing = Literal["sinkhorn", "permutations", "identity"]
Bias = Literal["zero", "one-hot", "diagonal"]
MIXED = {"sinkhorn": STREAMS**2, "permutations": math.factorial(STREAMS), "identity": 0}  # logits a position


def _parameters(mixing: str, family: Family, width: int, joins: int) -> int:
    logits = 2 * STREAMS + MIXED[mixing]
    connection = STREAMS * width * logits + logits + (3 if MIXED[mixing] else 2)
    return joins * connection + STREAMS * width * STREAMS + STREAMS + 1


def _flops(mixing: str, family: Family, width: int, joins: int) -> int:
    mixed = 0 if mixing == "identity" else 2 * STREAMS**2 * width
    mixed += 2 * STREAMS**2 * MIXED[mixing] if mixing == "permutations" else 0  # the mean of the matrices
    return joins * (2 * STREAMS * width * (2 * STREAMS + MIXED[mixing]) + mixed) + 2 * STREAMS * width * STREAMS


@register_block(
    "mhc",
    equation="X′ = M X + pᵀ H(norm(q X)), M doubly stochastic, q = σ(·), p = 2σ(·), a gated sum and a norm after the "
    "last layer",
    source="arXiv:2512.24880, eq. 7 to 9; deepseek-ai/TileKernels",
    summary="four streams, doubly stochastic mix",
    norms=1,
    leave_norms=1,
    extra_parameters=lambda family, width, joins: _parameters("sinkhorn", family, width, joins),
    extra_flops=lambda family, width, joins: _flops("sinkhorn", family, width, joins),
    starts=(Start("published", "scales 0.01, biases 0, small random maps"), SCALED_BRANCH),
    evidence="paper",
    init_state="base",
    group="modern",
    order=21,
)
class Mhc(Block):
    """X′ = M X + pᵀ H(norm(q X)) for streams X (4, …), which start as copies of the input.

    All weights depend on the position, by u = X / rms(X) over all streams: q = σ(a_q P_q u + b_q) + ε,
    p = 2σ(a_p P_p u + b_p), and M = Sinkhorn(a_m P_m u + b_m), 20 times columns, then rows. The last layer's streams
    are added with gates of the same form. The published scales a are 0.01; b and P are not published. Here b is 0 and P
    is normal with standard deviation 0.02: with P = 0 the streams would stay equal for ever.

    ``scale`` is the first a, ``spread`` the standard deviation of P. ``bias`` is the first b: ``zero``; ``one-hot`` has
    1 for the stream that is read, for all that are written and on M's diagonal; ``diagonal`` has ±1 for reading and
    writing one stream and −8 off M's diagonal. ``mixing`` is what M is: ``sinkhorn``; ``permutations``, a weighted mean
    of all 24; or the ``identity``.
    """

    def __init__(
        self,
        site: Site,
        *,
        mixing: Mixing = "sinkhorn",
        bias: Bias = "zero",
        scale: float = SCALE,
        spread: float = SPREAD,
    ) -> None:
        super().__init__()
        for option, value, known in (("mixing", mixing, get_args(Mixing)), ("bias", bias, get_args(Bias))):
            if value not in known:
                raise BadInput(f"block 'mhc': {option} is one of {', '.join(known)}, not {value!r}")
        family = site.family
        self.norm = family.norm(site.in_width)
        self.transform = family.transform(site)
        self.carry = family.carry(site)
        self.axis, self.stride, self.mixes = family.feature_axis, site.stride, mixing
        self.mixing = "tsb...,sbd...->tbd..." if family.kind == "image" else "ts...,s...d->t...d"
        self.sizes = [size for size in (STREAMS, STREAMS, MIXED[mixing]) if size]
        self.maps = family.affine(STREAMS * site.in_width, sum(self.sizes), bias=False)
        nn.init.normal_(self.maps.weight, std=spread)  # type: ignore[arg-type]
        self.bias = nn.Parameter(first_bias(bias, mixing, (site.index - 1) % STREAMS))
        self.scales = nn.Parameter(torch.full((len(self.sizes),), float(scale)))
        all_orders = torch.stack([torch.eye(STREAMS)[list(one)] for one in itertools.permutations(range(STREAMS))])
        self.register_buffer("orders", all_orders if mixing == "permutations" else None, persistent=False)

    orders: Tensor | None  # all permutation matrices (24, 4, 4)

    def forward(self, streams: Tensor) -> Tensor:
        logits = logits_of(self.maps, streams, self.axis)
        scales = torch.cat([scale.expand(size) for scale, size in zip(self.scales, self.sizes, strict=True)])
        across = [-1, *[1] * (logits.ndim - 1)]
        parts = (scales.view(across) * logits + self.bias.view(across)).split(self.sizes)
        read, write = torch.sigmoid(parts[0]) + EPS, 2 * torch.sigmoid(parts[1])
        branch = self.transform(self.norm((read.unsqueeze(self.axis) * streams).sum(0)))
        streams, write = carried(self.carry, streams), strided(write, self.stride)
        if self.mixes != "identity":
            streams = torch.einsum(self.mixing, self.mix(strided(parts[2], self.stride)), streams)
        written: Tensor = streams + write.unsqueeze(self.axis) * branch
        return written

    def mix(self, logits: Tensor) -> Tensor:
        """M, (4, 4, batch, …): row t has the weights with which the streams form the new stream t."""
        if self.orders is not None:
            return torch.einsum("kts,k...->ts...", self.orders, logits.softmax(0))
        return sinkhorn(logits.unflatten(0, (STREAMS, STREAMS)))

    @classmethod
    def build_enter(cls, site: Site, **options: Any) -> nn.Module:
        return Copies(STREAMS)

    @classmethod
    def build_leave(cls, site: Site, **options: Any) -> nn.Module:
        return GatedSum(site, float(options.get("scale", SCALE)))


class GatedSum(nn.Module):
    """Streams X (4, …) → norm(Σ g_i x_i) with g = σ(a P u + b) + ε by position; the norm only after the last layer."""

    def __init__(self, site: Site, scale: float) -> None:
        super().__init__()
        self.axis = site.family.feature_axis
        self.maps = site.family.affine(STREAMS * site.width, STREAMS, bias=False)
        nn.init.normal_(self.maps.weight, std=SPREAD)  # type: ignore[arg-type]
        self.bias = nn.Parameter(torch.zeros(STREAMS))
        self.scale = nn.Parameter(torch.tensor(scale))
        self.norm = final_norm(site)

    def forward(self, streams: Tensor) -> Tensor:
        logits = logits_of(self.maps, streams, self.axis)
        gates = torch.sigmoid(self.scale * logits + self.bias.view(-1, *[1] * (logits.ndim - 1))) + EPS
        y: Tensor = self.norm((gates.unsqueeze(self.axis) * streams).sum(0))
        return y


def logits_of(maps: nn.Module, streams: Tensor, axis: int) -> Tensor:
    """The map of all streams at a position over their common root mean square: (logits, batch, …)."""
    together = torch.cat(streams.unbind(0), dim=axis)
    logits: Tensor = maps(together * inverse_rms(together, axis))
    return logits.movedim(axis, 0)


def sinkhorn(logits: Tensor) -> Tensor:
    """A matrix (rows, columns, …) with positive entries whose rows sum to 1, and whose columns nearly do.

    exp(logits), normalised over columns and rows in turn.
    """
    matrix = logits.softmax(0) + EPS
    for _ in range(ITERATIONS - 1):
        matrix = matrix / (matrix.sum(1, keepdim=True) + EPS)
        matrix = matrix / (matrix.sum(0, keepdim=True) + EPS)
    return matrix / (matrix.sum(1, keepdim=True) + EPS)


def first_bias(bias: Bias, mixing: Mixing, stream: int) -> Tensor:
    """The first biases of reading, writing and mixing, for a connection whose own stream is ``stream``."""
    own, one = torch.eye(STREAMS)[stream], torch.ones(STREAMS)
    read, write = {"zero": (0 * one, 0 * one), "one-hot": (own, one), "diagonal": (2 * own - 1, 2 * own - 1)}[bias]
    if mixing == "permutations":  # the first permutation is the identity
        mix = torch.full((MIXED[mixing],), FAR).index_fill(0, torch.tensor(0), 0.0)
    elif mixing == "identity":
        mix = torch.empty(0)
    else:
        diagonal = torch.eye(STREAMS).flatten()
        mix = {"zero": 0 * diagonal, "one-hot": diagonal, "diagonal": FAR * (1 - diagonal)}[bias]
    return torch.cat((read, write, mix))


register_variant(
    "mhc-unscaled",
    Mhc,
    summary="mhc with scales of 1",
    about={
        "group": "control",
        "source": "linkedin/Liger-Kernel",
        "evidence": "code",
        "starts": (Start("published", "scales 1, biases 0, small random maps"),),
        "init_state": "mix",
    },
    scale=1.0,
)
register_variant(
    "mhc-onehot",
    Mhc,
    summary="mhc that reads one stream at first",
    about={
        "group": "control",
        "source": "lucidrains/hyper-connections",
        "evidence": "code",
        "starts": (Start("published", "maps 0, one stream is read, M near its diagonal"),),
        "init_state": "mix",
    },
    bias="one-hot",
    spread=0.0,
)
register_variant(
    "mhc-diag",
    Mhc,
    summary="mhc whose streams are almost unmixed at first",
    about={
        "group": "control",
        "source": "FFTYYY/mhc-lite",
        "evidence": "code",
        "starts": (Start("published", "maps 0, one stream is read and written most, M almost the identity"),),
        "init_state": "mix",
    },
    bias="diagonal",
    spread=0.0,
)
register_variant(
    "mhc-lite",
    Mhc,
    summary="four streams, mean of permutations",
    about={
        "group": "control",
        "equation": "X′ = M X + pᵀ H(norm(q X)), M a mean of permutations",
        "source": "arXiv:2601.05732",
        "extra_parameters": lambda family, width, joins: _parameters("permutations", family, width, joins),
        "extra_flops": lambda family, width, joins: _flops("permutations", family, width, joins),
        "starts": (Start("published", "M almost the identity, one stream is read and written most"),),
        "init_state": "mix",
    },
    mixing="permutations",
    bias="diagonal",
)
register_variant(
    "hc-identity",
    Mhc,
    summary="four streams, none mixed",
    about={
        "group": "control",
        "equation": "X′ = X + pᵀ H(norm(q X)), q = σ(·), p = 2σ(·)",
        "source": "the control of mhc in which M is the identity",
        "evidence": "secondary",
        "extra_parameters": lambda family, width, joins: _parameters("identity", family, width, joins),
        "extra_flops": lambda family, width, joins: _flops("identity", family, width, joins),
    },
    mixing="identity",
)
