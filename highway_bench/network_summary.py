"""Summary: a network's layers, shapes, parameters and FLOP, and those of plain at an equal budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import MATCHES, Match
from highway_bench.data import DataSet, make_dataset
from highway_bench.errors import BadInput, HighwayBenchError, UnknownName
from highway_bench.execution.failure import failure
from highway_bench.families import Family, families, make_family
from highway_bench.families.parts import count_parameters
from highway_bench.matching import baseline, matched_width, mismatch
from highway_bench.measure.flops import count_flops
from highway_bench.network import build
from highway_bench.options import GREATEST
from highway_bench.plan.grid import TRAINED
from highway_bench.plugins import PACKAGE
from highway_bench.provenance.free_memory import free_bytes, gib
from highway_bench.results.schema import Status
from highway_bench.stem_head import feature_positions

MOST_LAYERS = 20_000  # half a minute of work
MOST_FEATURES = 2**31 - 1  # of a layer: numbers of parameters stay finite as floats
LAYER_BYTES = 10_000  # of the Python objects of one layer, without its weights


@dataclass(frozen=True)
class ModuleSummary:
    """A module of a network. ``level`` is its nesting depth, ``output`` the shape of its output for one item (empty
    where that is no tensor), ``repeats`` the number of equal modules; ``params`` and ``flops`` are those of one."""

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

    ``layer_params`` and ``layer_flops`` are one layer's, from closed forms. ``mismatch`` is the relative difference of
    its cost under ``match`` from plain's at ``nominal_width``. ``equal`` is plain's own summary at that width.
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
    layers: list[ModuleSummary]
    equal: NetworkSummary | None = field(default=None)


def summarise(
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
    """Summary of a network, which is built with random weights and run once; no data are read.

    ``width`` is plain's, by default that of the trainability profiles; ``match`` decides the block's width. Without
    ``dataset``, the network is the stack alone on an example input. Raises ``BadInput`` for an unknown name or an
    impossible option, for a network that does not fit memory, and for a plug-in's block or family that raises.
    """
    if match not in MATCHES:
        raise UnknownName("match", match, MATCHES)
    if seq_len is not None and not 1 <= seq_len <= GREATEST:
        raise BadInput(f"a sequence has 1 to {GREATEST} steps, not {seq_len}")
    layers = make_family(family, **(family_options or {})) if isinstance(family, str) else family
    data = None if dataset is None else make_dataset(dataset, **({"length": seq_len} if seq_len is not None else {}))
    nominal = TRAINED.widths[layers.kind] if width is None else width
    chosen, plain = blocks.get(block), baseline()

    def of(spec: BlockSpec, options: Mapping[str, Any], equal: NetworkSummary | None = None) -> NetworkSummary:
        layers.check_width(nominal)
        positions = feature_positions(layers, data, seq_len)
        own = matched_width(spec, layers, nominal, match, positions=positions)
        check_memory(spec, layers, own, depth)
        network = build(spec.name, layers, width=own, depth=depth, dataset=data, block_options=options, seed=0).eval()
        source = torch.Generator().manual_seed(0)
        x = layers.example(1, own, seq_len=seq_len, generator=source) if data is None else example_of(data)
        with torch.no_grad():
            flops = count_flops(lambda: network(x))
            modules = layers_of(network, x)
        return NetworkSummary(
            block=spec.name,
            equation=spec.equation,
            family=layers.name,
            transform=transform_of(layers),
            dataset=dataset,
            depth=depth,
            width=own,
            nominal_width=nominal,
            match=match,
            mismatch=mismatch(spec, layers, own, nominal, match, positions),
            input=tuple(x.shape[1:]),
            params=count_parameters(network),
            flops=flops,
            layer_params=spec.layer_parameters(layers, own),
            layer_flops=spec.layer_flops(layers, own, positions),
            layers=modules,
            equal=equal,
        )

    try:
        return of(chosen, block_options or {}, None if chosen is plain else of(plain, {}))
    except HighwayBenchError:
        raise
    except Exception as error:
        status, message = failure(error)
        if status == Status.OOM:  # one tensor is too large, such as that of a long sequence
            raise BadInput(f"this network does not fit this machine's memory: {message}") from error
        if are_own(block, layers.name):
            raise
        raise BadInput(f"block {block!r} in family {layers.name!r}: {message}") from error


def are_own(block: str, family: str) -> bool:
    """Whether both are of this package: an error of theirs is a bug, and that of a user's code is bad input."""
    entries = ((blocks, block), (families, family))
    return all(name in known and known.module_of(name).partition(".")[0] == PACKAGE for known, name in entries)


def check_memory(spec: BlockSpec, family: Family, width: int, depth: int) -> None:
    """Raise ``BadInput`` for a stack of too many layers, or one that this machine's free memory cannot hold, before any
    of it is built."""
    if width > MOST_FEATURES:
        raise BadInput(f"width is at most {MOST_FEATURES:,}")
    if depth > MOST_LAYERS:
        raise BadInput(f"a network of {depth:,} layers is not built: the most is {MOST_LAYERS:,}")
    needed = depth * LAYER_BYTES + torch.float32.itemsize * spec.stack_parameters(family, width, depth)
    free = free_bytes("cpu")
    if needed > free:
        raise BadInput(
            f"{spec.name} of {depth:,} layers of width {width:,} needs {gib(needed)} of memory, and {gib(free)} are "
            "free"
        )


def transform_of(family: Family) -> str:
    """H as an equation; for a custom family, the name of its factory."""
    return families.get(family.name).transform if family.name in families else f"H = {family.name}(width)"


def example_of(data: DataSet) -> Tensor:
    """One random input of a data set's shape; nothing is read."""
    source = torch.Generator().manual_seed(0)
    if data.input_kind == "tokens":
        assert data.vocabulary is not None
        return torch.randint(data.vocabulary, (1, *data.input_shape), generator=source)
    return torch.rand(1, *data.input_shape, generator=source)


class ModuleCall(NamedTuple):
    """A module's call: its arguments, and the shape of its output."""

    args: tuple[Any, ...]
    keywords: dict[str, Any]
    output: tuple[int, ...]


def layers_of(network: nn.Module, x: Tensor) -> list[ModuleSummary]:
    """The network's modules from the outside in, run on ``x``. Module lists and identities are left out. A repeating
    pattern in a module list appears once."""
    calls: dict[nn.Module, ModuleCall] = {}

    def note(module: nn.Module, args: tuple[Any, ...], keywords: dict[str, Any], output: Any) -> None:
        calls[module] = ModuleCall(args, keywords, tuple(output.shape[1:]) if isinstance(output, Tensor) else ())

    handles = [module.register_forward_hook(note, with_kwargs=True) for module in network.modules()]
    try:
        network(x)
    finally:
        for handle in handles:
            handle.remove()
    return list(_inside(network, calls, "", 0, 1))


def _inside(
    parent: nn.Module, calls: Mapping[nn.Module, ModuleCall], path: str, level: int, repeats: int
) -> Iterator[ModuleSummary]:
    """Entries of all modules inside ``parent``, which itself occurs ``repeats`` times."""
    children = list(parent.named_children())
    times = 1
    if isinstance(parent, nn.ModuleList) and children:
        signatures = [_signature(child, calls) for _, child in children]
        period = _period(signatures)
        children, times = children[:period], len(children) // period
    for name, child in children:
        inner = f"{path}.{name}" if path else name
        if isinstance(child, nn.ModuleList):
            yield from _inside(child, calls, inner, level, repeats)
        elif child in calls and not isinstance(child, nn.Identity):
            yield _layer(child, calls[child], inner, level, repeats * times)
            yield from _inside(child, calls, inner, level + 1, repeats * times)


def _layer(module: nn.Module, call: ModuleCall, name: str, level: int, repeats: int) -> ModuleSummary:
    flops = count_flops(lambda: module(*call.args, **call.keywords))
    return ModuleSummary(name, type(module).__name__, level, call.output, count_parameters(module), flops, repeats)


def _signature(module: nn.Module, calls: Mapping[nn.Module, ModuleCall]) -> list[Any]:
    """Equal for modules of equal structure and output shapes."""
    return [
        (
            type(one).__name__,
            [parameter.shape for parameter in one.parameters(recurse=False)],
            calls[one].output if one in calls else None,
        )
        for one in module.modules()
    ]


def _period(signatures: list[Any]) -> int:
    """The period of a list that consists of repetitions; its length where it does not repeat."""
    length = len(signatures)
    return next(one for one in range(1, length + 1) if signatures[:one] * (length // one) == signatures)
