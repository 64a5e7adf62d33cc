"""Network: stem → enter → depth × block → leave → head. Of several stages the first enters and the last leaves; each
does where plain layers stand between them.

``build`` makes it: without a data set it gives the stretch alone, a module that keeps the shape of its input and can
be used anywhere; with one, the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from highway_bench.blocks import Block, BlockSpec, blocks
from highway_bench.data import DataSet, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import CHANGES, Change, Family, Site, make_family
from highway_bench.families.padding import ReadsLengths, lengths_of, real_steps, told_lengths
from highway_bench.stem_head import build_head, build_stem


class Stage(NamedTuple):
    """A stretch of layers of one width; ``stride`` divides the image's side at its entrance."""

    depth: int
    width: int
    stride: int = 1


class Stack(nn.Module):
    """enter → joins → leave, at one width: a network, or a stage of one. A layer of a family with two sublayers is two
    joins."""

    def __init__(self, enter: nn.Module, joins: Sequence[nn.Module], leave: nn.Module) -> None:
        super().__init__()
        self.enter = enter
        self.joins = nn.ModuleList(joins)
        self.leave = leave

    def forward(self, x: Tensor) -> Tensor:
        state = self.enter(x)
        for join in self.joins:
            state = join(state)
        y: Tensor = self.leave(state)
        return y


class Network(nn.Module):
    """stem → body → head. ``pool_steps`` says that the head answers once for a whole sequence: it is given the mean
    over steps, those of padding (token 0) left out.

    ``padded`` inputs are tokens with padding at rows' ends. Transforms that read other steps and ask for the rows'
    lengths are told them, so that what they say of a text does not hang on how far it was padded.
    """

    def __init__(self, stem: nn.Module, body: nn.Module, head: nn.Module, *, pool_steps: bool, padded: bool) -> None:
        super().__init__()
        self.stem = stem
        self.body = body
        self.head = head
        self.pool_steps = pool_steps
        self.padded = padded
        self.readers = [part for part in body.modules() if isinstance(part, ReadsLengths)] if padded else []

    def forward(self, inputs: Tensor) -> Tensor:
        with told_lengths(self.readers, lengths_of(inputs)) if self.readers else nullcontext():
            features = self.body(self.stem(inputs))
        if self.pool_steps and self.padded:
            real = (inputs != 0).unsqueeze(-1).to(features.dtype)
            features = (features * real).sum(-2) / real.sum(-2).clamp(min=1)
        elif self.pool_steps:
            features = features.mean(-2)
        answers: Tensor = self.head(features)
        return answers


def unpadded_steps(network: nn.Module, inputs: Tensor) -> Tensor | None:
    """Which steps of ``inputs`` are no padding to ``network``, (batch, steps); ``None`` where all count."""
    return real_steps(inputs) if isinstance(network, Network) and network.padded else None


def build(
    block: str | type[Block],
    family: str | Family = "dense",
    *,
    width: int | None = None,
    depth: int | None = None,
    stages: Sequence[tuple[int, ...]] | None = None,
    change: Change = "plain",
    dataset: str | DataSet | None = None,
    block_options: Mapping[str, Any] | None = None,
    family_options: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> nn.Module:
    """Build ``depth`` layers of ``family`` joined by ``block``, as an ``nn.Module``.

    Without ``dataset`` the module keeps the shape of its input: (batch, width), (batch, steps, width) or (batch, width,
    side, side) by the family's kind. With one, it takes that data set's inputs and gives answers: (batch, classes),
    (batch,) or (batch, steps, vocabulary).

    Instead of ``width`` and ``depth``, ``stages`` lists (depth, width[, stride]) of each stretch. ``change`` says how
    the dimension changes between them: ``plain`` puts a layer of the family without a connection there (the highway
    paper's way), ``pad`` zero-pads the carried path's features, ``subsample`` keeps evenly spaced ones; both drop
    pixels. ``project``, in families of images, carries by a 1×1 convolution and a norm.

    ``depth`` counts the layers that the block joins. ``seed``, if given, is set just before anything is built and
    leaves the global random state as it was. Raises ``BadInput`` on an unknown name or option, or an impossible width
    or depth.

    >>> hb.build("highway", "dense", width=50, depth=9, dataset="mnist-5k")
    """
    if stages is None:
        if width is None or depth is None:
            raise BadInput("build needs a width and a depth, or stages")
        stages = [Stage(depth, width)]
    elif width is not None or depth is not None:
        raise BadInput("build takes a width and a depth, or stages, not both")
    if change not in CHANGES:
        raise BadInput(f"unknown way to change dimension {change!r}; known: {', '.join(CHANGES)}")
    spec = blocks.get(block) if isinstance(block, str) else block.spec
    if isinstance(family, str):
        family = make_family(family, **(family_options or {}))
    elif family_options:
        raise BadInput("family_options go with a family's name; a family object has its options already")
    if isinstance(dataset, str):
        dataset = make_dataset(dataset)
    options = {**spec.options, **(block_options or {})}
    spec.check_options(options)
    stretches = [Stage(*stage) for stage in stages]
    for stage in stretches:  # before the seed is set: a user's factory may draw numbers while it is tried
        check_depth(stage.depth)
        family.check_width(stage.width)
    with torch.random.fork_rng(devices=[], enabled=seed is not None):
        if seed is not None:
            torch.manual_seed(seed)
        return _assemble(spec, family, stretches, change, dataset, options)


def _assemble(
    spec: BlockSpec,
    family: Family,
    stages: Sequence[Stage],
    change: Change,
    dataset: DataSet | None,
    options: Mapping[str, Any],
) -> nn.Module:
    stem = build_stem(dataset, family, stages[0].width) if dataset else None  # first, so that seeds mean the same
    body = build_body(spec, family, stages, change, options)
    if dataset is None or stem is None:
        return body
    pool_steps = family.kind == "sequence" and dataset.target_kind != "token"
    head = build_head(dataset, family, stages[-1].width)
    return Network(stem, body, head, pool_steps=pool_steps, padded=dataset.padded)


def build_body(
    spec: BlockSpec,
    family: Family,
    stages: Sequence[Stage],
    change: Change,
    options: Mapping[str, Any],
    *,
    in_width: int | None = None,
) -> nn.Module:
    """The stages' stacks in a row, with what changes the dimension between them, and before the first of them where
    ``in_width`` is not its width. Under ``plain`` every stage takes and gives the stream, so that a layer or a pool can
    stand between; else the blocks' state goes on from the first stage's entrance to the last one's end."""
    total = sum(stage.depth for stage in stages)
    parts: list[nn.Module] = []
    width, first = in_width or stages[0].width, 0
    for stage in stages:
        stride = stage.stride
        if change == "plain" and (width != stage.width or stride != 1):
            part = family.sublayers[0]
            parts.append(part.transform(Site(part, stage.width, first, total, in_width=width, stride=stride)))
            width, stride = stage.width, 1
        parts.append(_build_stack(spec, family, stage, first, total, width, stride, change, options))
        width, first = stage.width, first + stage.depth
    return parts[0] if len(parts) == 1 else nn.Sequential(*parts)


def _build_stack(
    spec: BlockSpec,
    family: Family,
    stage: Stage,
    first: int,
    total: int,
    in_width: int,
    stride: int,
    change: Change,
    options: Mapping[str, Any],
) -> Stack:
    parts = family.sublayers
    sites = [
        Site(
            part,
            stage.width,
            layer,
            total,
            place,
            len(parts),
            change=change,
            in_width=in_width if (layer, place) == (first, 1) else stage.width,
            stride=stride if (layer, place) == (first, 1) else 1,
        )
        for layer in range(first, first + stage.depth)
        for place, part in enumerate(parts, start=1)
    ]
    opens, closes = (change == "plain" or end for end in (first == 0, sites[-1].last))
    enter = spec.cls.build_enter(sites[0], **options) if opens else nn.Identity()
    joins = [spec.join(site, options) for site in sites]
    return Stack(enter, joins, spec.cls.build_leave(sites[-1], **options) if closes else nn.Identity())


def check_depth(depth: int) -> None:
    """Raise ``BadInput`` for a depth that no network has."""
    if depth < 1:
        raise BadInput(f"depth must be at least 1, not {depth}")
