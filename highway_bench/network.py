"""Network: stem → enter → depth × block → leave → head.

With several stages, the first has ``enter`` and the last has ``leave``; where plain layers connect the stages, each
stage has both. Without a data set, ``build`` returns the layers alone, a module that preserves the shape of its input
and can be used anywhere. With one, it returns the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor, nn

from highway_bench.blocks import Block, BlockSpec, blocks
from highway_bench.data import DataSet, make_dataset
from highway_bench.errors import BadInput
from highway_bench.families import CHANGES, AnyLayer, Change, Family, Site, as_family
from highway_bench.families.causality import looks_ahead
from highway_bench.families.padding import ReadsLengths, lengths_of, real_mask, real_steps, set_lengths
from highway_bench.families.parts import DirectParts
from highway_bench.families.seeding import seeded
from highway_bench.measure.precision import cast, torch_dtype
from highway_bench.options import check_whole, with_near_names
from highway_bench.stem_head import Incompatible, build_head, build_stem

TRIED_DEPTH = 3  # of stacks that are tried for what they read: later layers may carry another state than the first

_reads_later_steps: dict[tuple[object, ...], bool] = {}


class Stage(NamedTuple):
    """Layers of one width; the first layer divides the image's side by ``stride``."""

    depth: int
    width: int
    stride: int = 1


class Stack(DirectParts):
    """enter → connections → leave, at one width: a network without stem and head, or one stage of it.

    ``joins`` are the connections, in order. A layer of a family with two sublayers has two.
    """

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
    """stem → body → head.

    With ``pool_steps`` the head gives one output for a whole sequence, from the mean over steps without padding (see
    ``real_mask``). ``padded`` inputs are tokens, and their rows may end in padding. Transforms that read other steps
    get the rows' lengths, so that their output for a text does not depend on its padding.
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
        with set_lengths(self.readers, lengths_of(inputs)) if self.readers else nullcontext():
            features = self.body(self.stem(inputs))
        if self.pool_steps and self.padded:
            real = real_mask(inputs).unsqueeze(-1).to(features.dtype)
            features = (features * real).sum(-2) / real.sum(-2)
        elif self.pool_steps:
            features = features.mean(-2)
        predictions: Tensor = self.head(features)
        return predictions


def unpadded_steps(network: nn.Module, inputs: Tensor) -> Tensor | None:
    """Mask of the steps of ``inputs`` that are not padding, (batch, steps); ``None`` where ``network`` counts all
    steps."""
    return real_steps(inputs) if isinstance(network, Network) and network.padded else None


@with_near_names
def build(
    block: str | type[Block],
    family: AnyLayer = "dense",
    *,
    width: int | None = None,
    depth: int | None = None,
    stages: Sequence[tuple[int, ...]] | None = None,
    change: Change = "plain",
    dataset: str | DataSet | None = None,
    block_options: Mapping[str, Any] | None = None,
    family_options: Mapping[str, Any] | None = None,
    start: str | None = None,
    seed: int | None = None,
) -> nn.Module:
    """Build ``depth`` layers of ``family``, each connected by ``block``, as an ``nn.Module``.

    Without ``dataset`` the module preserves the shape of its input: (batch, width), (batch, steps, width) or (batch,
    width, side, side), by the family's kind. With one, it maps that data set's inputs to predictions: (batch, classes),
    (batch,) or (batch, steps, vocabulary).

    Instead of ``width`` and ``depth``, ``stages`` lists (depth, width[, stride]) of each stage. ``change`` is how the
    dimension changes between stages. ``plain`` inserts a layer of the family without a connection, as the highway paper
    does. ``pad`` zero-pads the carried path's features, and ``subsample`` takes evenly spaced ones; both drop pixels.
    ``project``, for families of images, puts a 1×1 convolution and a norm on the carried path.

    ``depth`` counts the layers with the block. ``start`` names one of the block's starts, ``published`` or
    ``depth-aware``; without it the block begins by its first one. ``seed``, if given, is
    set before anything is built; torch's random state is restored afterwards. The module is float32, or of the dtype
    that the parameters of a user's layer have. Raises ``BadInput`` for an unknown name
    or option, or an impossible width or depth.

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
    spec = blocks.get(block) if isinstance(block, str) else getattr(block, "spec", None)
    if not isinstance(spec, BlockSpec):
        raise BadInput(f"a block is a name or a class that was registered, and not {block!r}")
    layers = as_family(family, **(family_options or {}))
    if isinstance(dataset, str):
        dataset = make_dataset(dataset)
    if not isinstance(dataset, DataSet | None):
        raise BadInput(f"dataset must be a data set's name, not a {type(dataset).__name__}; hb.run takes data")
    options, layers = started(spec, layers, block_options, start)
    all_stages = [Stage(*stage) for stage in stages]
    for stage in all_stages:  # before the seed is set: the check may run a user's factory, which may draw numbers
        check_depth(stage.depth)
        check_whole("width", stage.width)
        layers.check_width(stage.width)
    with seeded(seed):
        network = _assemble(spec, layers, all_stages, change, dataset, options)
    return network if layers.dtype is None else cast(network, torch_dtype(layers.dtype))


def _assemble(
    spec: BlockSpec,
    family: Family,
    stages: Sequence[Stage],
    change: Change,
    dataset: DataSet | None,
    options: Mapping[str, Any],
) -> nn.Module:
    # The stem is first, so that a seed gives the same stem with every block.
    stem = build_stem(dataset, family, stages[0].width) if dataset else None
    if dataset is not None:
        check_causal(dataset, spec, family, stages[0].width, options)
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
    """The stages' stacks in sequence, with the changes of dimension between them, and before the first stage if
    ``in_width`` is not its width.

    With ``plain`` every stage maps stream to stream, so that a layer or a pool can follow it. Otherwise the blocks'
    state is passed on from the first stage to the last. Raises ``Incompatible`` for a family or a width that the block
    cannot have.
    """
    for stage in stages:
        spec.check_family(family, stage.width, Incompatible)
    total = sum(stage.depth for stage in stages)
    parts: list[nn.Module] = []
    width, first = in_width or stages[0].width, 0
    for stage in stages:
        stride = stage.stride
        if change == "plain" and (width != stage.width or stride != 1):
            part = family.sublayers[0]
            if part.init == "scaled-branch":  # the layer is no branch
                part = replace(part, init="default")
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
    sites = [
        Site(
            part,
            stage.width,
            layer,
            total,
            sublayer,
            len(family.sublayers),
            change=change,
            in_width=in_width if (layer, sublayer) == (first, 1) else stage.width,
            stride=stride if (layer, sublayer) == (first, 1) else 1,
            first=first if change == "plain" else 0,
        )
        for layer in range(first, first + stage.depth)
        for sublayer, part in enumerate(family.one_layer(), start=1)
    ]
    opens, closes = (change == "plain" or end for end in (first == 0, sites[-1].last))
    enter = spec.cls.build_enter(sites[0], **options) if opens else nn.Identity()
    joins = [spec.join(site, options) for site in sites]
    return Stack(enter, joins, spec.cls.build_leave(sites[-1], **options) if closes else nn.Identity())


def check_causal(dataset: DataSet, spec: BlockSpec, family: Family, width: int, options: Mapping[str, Any]) -> None:
    """Raise ``Incompatible`` where the targets of ``dataset`` are later steps, and the block reads these."""
    if dataset.causal and reads_later_steps(spec, family, width, options):
        raise Incompatible(f"block {spec.name!r} reads later steps, which are the targets of this data set")


def reads_later_steps(spec: BlockSpec, family: Family, width: int, options: Mapping[str, Any]) -> bool:
    """Whether an output of a stack depends on later steps of its input; tried once for these arguments."""
    tried = spec.cls, repr(options), family, width
    if tried not in _reads_later_steps:
        make = partial(build_body, spec, family, [Stage(TRIED_DEPTH, width)], "plain", options)
        _reads_later_steps[tried] = looks_ahead(make, family, width)
    return _reads_later_steps[tried]


def started(
    spec: BlockSpec, family: Family, options: Mapping[str, Any] | None, start: str | None
) -> tuple[dict[str, Any], Family]:
    """All options of the block, and the family, for the start called ``start``, or else the block's first one.

    ``options`` prevail over a start's, and an init of the family over that of the first start. Raises ``BadInput`` for
    a start that the block does not have, or that the family cannot have.
    """
    chosen = spec.starts[0] if start is None else spec.start(start)
    if chosen.init not in family.inits:
        raise BadInput(f"family {family.name!r} has no init {chosen.init!r}, which the start {chosen.name!r} needs")
    if chosen.init != "default" and (start is not None or family.init == "default"):
        family = replace(family, init=chosen.init)
    return all_options(spec, {**chosen.options, **(options or {})}), family


def all_options(spec: BlockSpec, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The block's ``options``, and its own defaults for others; raises ``BadInput`` for one that it does not have."""
    merged = {**spec.options, **(options or {})}
    spec.check_options(merged)
    return merged


def check_depth(depth: int) -> None:
    """Raise ``BadInput`` for a depth that is no whole number, or below 1."""
    check_whole("depth", depth)
    if depth < 1:
        raise BadInput(f"depth must be at least 1, not {depth}")
