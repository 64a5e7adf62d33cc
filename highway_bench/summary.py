"""Describe: a network's layers, shapes, parameters and FLOP, with plain's at an equal budget beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import MATCHES, Match
from highway_bench.data import DataSet, make_dataset
from highway_bench.errors import UnknownName
from highway_bench.families import Family, families, make_family
from highway_bench.matching import matched_width, mismatch, yardstick
from highway_bench.measure.flops import count_flops
from highway_bench.network import build
from highway_bench.plan.profiles import TRAINED


@dataclass(frozen=True)
class Layer:
    """A module of a network. ``level`` is how deep it is nested, ``output`` its output's shape for one item
    (empty where that is no tensor), ``repeats`` how many like it there are; ``params`` and ``flops`` are of each."""

    name: str
    module: str
    level: int
    output: tuple[int, ...]
    params: int
    flops: int
    repeats: int = 1


@dataclass(frozen=True)
class NetworkSummary:
    """A network as it would be built. FLOP are those of a forward pass for one item; a multiply-add is two.

    ``layer_params`` and ``layer_flops`` are one layer's, from closed forms. ``mismatch`` is how far its cost under
    ``match`` is from plain's at ``nominal_width``, relative to plain's. ``equal`` is plain's own summary there.
    """

    block: str
    equation: str
    family: str
    transform: str
    dataset: str | None
    depth: int
    width: int
    nominal_width: int
    match: Match
    mismatch: float
    input: tuple[int, ...]
    params: int
    flops: int
    layer_params: int
    layer_flops: int
    layers: list[Layer]
    equal: NetworkSummary | None = field(default=None)


def describe(
    block: str,
    family: str | Family = "dense",
    *,
    depth: int = 10,
    width: int | None = None,
    dataset: str | None = None,
    match: str = "params",
    seq_len: int | None = None,
    block_options: Mapping[str, Any] | None = None,
    family_options: Mapping[str, Any] | None = None,
) -> NetworkSummary:
    """The network of these words, built with random weights and run once; no data are read.

    ``width`` is plain's, by default that of the trainability profiles; the block gets the width that ``match`` gives
    it. Without ``dataset``, the network is the bare stack on an example input. Raises ``BadInput`` for what cannot be.
    """
    if match not in MATCHES:
        raise UnknownName("match", match, MATCHES)
    made = make_family(family, **(family_options or {})) if isinstance(family, str) else family
    data = None if dataset is None else make_dataset(dataset, **({"length": seq_len} if seq_len is not None else {}))
    nominal = TRAINED.widths[made.kind] if width is None else width
    spec, plain = blocks.get(block), yardstick()
    words = (made, nominal, depth, match, data, dataset, seq_len)
    equal = None if spec is plain else _summary(plain, *words, {}, None)
    return _summary(spec, *words, block_options or {}, equal)


def _summary(
    spec: BlockSpec,
    family: Family,
    nominal: int,
    depth: int,
    match: Match,
    data: DataSet | None,
    dataset: str | None,
    seq_len: int | None,
    options: Mapping[str, Any],
    equal: NetworkSummary | None,
) -> NetworkSummary:
    inputs = None if data is None else example_of(data)
    family.check_width(nominal)
    positions = family.positions(seq_len)
    width = matched_width(spec, family, nominal, match, positions=positions)
    network = build(spec.name, family, width=width, depth=depth, dataset=data, block_options=options, seed=0).eval()
    x = (
        family.example(1, width, seq_len=seq_len, generator=torch.Generator().manual_seed(0))
        if inputs is None
        else inputs
    )
    with torch.no_grad():
        flops = count_flops(lambda: network(x))
        layers = layers_of(network, x)
    return NetworkSummary(
        block=spec.name,
        equation=spec.equation,
        family=family.name,
        transform=transform_of(family),
        dataset=dataset,
        depth=depth,
        width=width,
        nominal_width=nominal,
        match=match,
        mismatch=mismatch(spec, family, width, nominal, match, positions),
        input=tuple(x.shape[1:]),
        params=sum(parameter.numel() for parameter in network.parameters()),
        flops=flops,
        layer_params=spec.layer_parameters(family, width),
        layer_flops=spec.layer_flops(family, width, positions),
        layers=layers,
        equal=equal,
    )


def transform_of(family: Family) -> str:
    """H as an equation; of a custom family, its factory."""
    return families.get(family.name).transform if family.name in families else f"H = {family.name}(width)"


def example_of(data: DataSet) -> Tensor:
    """One input of a data set's shape, made up: nothing is read."""
    source = torch.Generator().manual_seed(0)
    if data.input_kind == "tokens":
        assert data.vocabulary is not None
        return torch.randint(data.vocabulary, (1, *data.input_shape), generator=source)
    return torch.rand(1, *data.input_shape, generator=source)


class Call(NamedTuple):
    """What a module was called with, and the shape that it gave."""

    args: tuple[Any, ...]
    words: dict[str, Any]
    output: tuple[int, ...]


def layers_of(network: nn.Module, x: Tensor) -> list[Layer]:
    """The network's modules from the outside in, run on ``x``. Lists of modules and identities are left out; what
    repeats itself in a list of modules is there once."""
    calls: dict[nn.Module, Call] = {}

    def note(module: nn.Module, args: tuple[Any, ...], words: dict[str, Any], output: Any) -> None:
        calls[module] = Call(args, words, tuple(output.shape[1:]) if isinstance(output, Tensor) else ())

    handles = [module.register_forward_hook(note, with_kwargs=True) for module in network.modules()]
    try:
        network(x)
    finally:
        for handle in handles:
            handle.remove()
    return list(_inside(network, calls, "", 0, 1))


def _inside(parent: nn.Module, calls: Mapping[nn.Module, Call], path: str, level: int, repeats: int) -> Iterator[Layer]:
    """Entries of everything inside ``parent``, which itself is there ``repeats`` times."""
    children = list(parent.named_children())
    alike = 1
    if isinstance(parent, nn.ModuleList) and children:
        signatures = [_signature(child, calls) for _, child in children]
        period = _period(signatures)
        children, alike = children[:period], len(children) // period
    for name, child in children:
        inner = f"{path}.{name}" if path else name
        if isinstance(child, nn.ModuleList):
            yield from _inside(child, calls, inner, level, repeats)
        elif child in calls and not isinstance(child, nn.Identity):
            yield _layer(child, calls[child], inner, level, repeats * alike)
            yield from _inside(child, calls, inner, level + 1, repeats * alike)


def _layer(module: nn.Module, call: Call, name: str, level: int, repeats: int) -> Layer:
    params = sum(parameter.numel() for parameter in module.parameters())
    flops = count_flops(lambda: module(*call.args, **call.words))
    return Layer(name, type(module).__name__, level, call.output, params, flops, repeats)


def _signature(module: nn.Module, calls: Mapping[nn.Module, Call]) -> list[Any]:
    """Equal for modules that are built alike and gave the same shapes."""
    return [
        (
            type(one).__name__,
            [parameter.shape for parameter in one.parameters(recurse=False)],
            calls[one].output if one in calls else None,
        )
        for one in module.modules()
    ]


def _period(signatures: list[Any]) -> int:
    """After how many entries the list repeats itself, through to its end; its length where it does not."""
    length = len(signatures)
    return next(
        period
        for period in range(1, length + 1)
        if length % period == 0 and signatures == signatures[:period] * (length // period)
    )
