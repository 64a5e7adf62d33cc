"""Probing: what a user's layer takes and does, from small inputs.

Every module is built by the factory under the same seed instead of being copied: some modules cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional

from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families._site import Kind, shape_of
from highway_bench.families.own_layer import (
    Adapted,
    Factory,
    Unfit,
    called,
    check_inputs,
    fill_lazy,
    further_inputs,
    own_dtype,
    reason,
    without_dropout,
)
from highway_bench.families.parts import trained_numbers
from highway_bench.families.seeding import all_seeded
from highway_bench.measure.torch_internals import writes_so_far
from highway_bench.terminal import prints_to_stderr

Positions = tuple[int, ...]

WIDTH = 64
WIDTHS = (WIDTH, 48, 60, 96, 40, 56, 128, 256, 512, 768, 1024, *range(1, WIDTH))  # some layers take few widths
POSITIONS: dict[Kind, tuple[Positions, ...]] = {  # and some few lengths, or few sides of an image
    "vector": ((),),
    "sequence": ((5,), (8,), (16,), (32,), (64,)),
    "image": ((7, 7), (8, 8), (14, 14), (16, 16), (28, 28), (32, 32)),
}
FIXED = tuple((length,) for length in (*range(1, 64), 100, 128, 196, 197, 256, 257, 512, 1024))
"""Lengths that are tried last: those of layers that take one length alone, as a mixer over positions does."""


@dataclass(frozen=True)
class Traits:
    """What is known of a user's layer: its ``kind`` of input, its number of ``parts``, a size (``width``,
    ``positions``) that it takes, its ``dtype`` where that is not float32, whether it ``writes`` to its input, returns
    ``several`` outputs or takes ``further`` inputs, and the largest share of ``dropout`` in it."""

    kind: Kind
    parts: int
    width: int
    positions: Positions
    dtype: torch.dtype | None
    writes: bool
    several: bool
    further: bool
    dropout: float


@dataclass(frozen=True)
class LayerProbe:
    """A layer at a width, on inputs of a kind: builds it and runs it."""

    factory: Factory
    name: str
    width: int
    kind: Kind
    positions: Positions
    dtype: torch.dtype | None = None  # of its parameters, where that is not float32

    @property
    def shape(self) -> tuple[int, ...]:
        return shape_of(self.kind, self.width, self.positions)

    def modules(self) -> tuple[Adapted, ...]:
        """New modules, equal ones at every call."""
        with isolated():
            modules = called(self.factory, self.width, self.name)
            without_dropout(modules)
            made = tuple(
                Adapted(one, further=further_inputs(one, self.factory, self.width, self.kind)) for one in modules
            )
            fill_lazy(made, self.shape)
            return made

    def normal(self) -> Tensor:
        """A standard-normal input."""
        return torch.randn(self.shape, dtype=self.dtype, device="cpu")

    def zeros(self, dtype: torch.dtype | None = None) -> Tensor:
        """An input of zeros, in the layer's dtype where no other is given."""
        return torch.zeros(self.shape, dtype=dtype or self.dtype, device="cpu")

    def fault(self) -> str | None:
        """How a module changes the shape or the dtype of its input, in words; raises ``Unfit`` where it raises."""
        if self.dtype is not None:
            self.check_casts()
        faults = (change(module, self.zeros()) for module in self.modules())
        return next((fault for fault in faults if fault is not None), None)

    def check_casts(self) -> None:
        """Raise ``BadInput`` where a module with parameters of another dtype takes float32 and does not return it."""
        for module in self.modules():
            with isolated(), torch.no_grad():
                try:
                    y = module(self.zeros(torch.float32))
                except USER_ERRORS:  # it takes its own dtype alone
                    continue
            if isinstance(y, Tensor) and y.dtype != torch.float32:
                raise BadInput(
                    f"family {self.name!r} casts: an input of float32 becomes {named(y.dtype)}; return y.to(x.dtype), "
                    "or leave the cast out: a layer is run in the dtype of its parameters"
                )

    def mixing(self) -> str | None:
        """How a module mixes the items of a batch in evaluation mode, in words; ``None`` if none does."""
        with isolated(), torch.no_grad():
            x = self.normal()
            changed = torch.cat([self.normal()[:1], x[1:]])
        for modules in zip(self.modules(), self.modules(), strict=True):  # one for each batch
            outputs = []
            for module, batch in zip(modules, (x, changed), strict=True):
                with isolated(), torch.no_grad():
                    outputs.append(module.eval()(batch)[1:].float())
            if not torch.allclose(outputs[0], outputs[1], rtol=1e-3, atol=1e-5):
                return f"{self.shape} mixes the items of the batch"
        return None

    def writes(self) -> bool:
        """Whether a module writes to its input, in either mode, as it comes from a ReLU, a norm or an addition."""
        return any(
            writes(module.train(training), x)
            for module in self.modules()
            for training in (True, False)
            for x in self.inner_inputs()
        )

    def inner_inputs(self) -> list[Tensor]:
        """Inputs as a stack has them: the results of other operations, which gradients flow to."""
        with isolated():
            leaf = self.normal().requires_grad_()
        return [torch.relu(leaf), functional.layer_norm(leaf, leaf.shape[-1:]), leaf + leaf]


def writes(module: nn.Module, x: Tensor) -> bool:
    """Whether ``module`` writes to ``x``."""
    before = Watched(x)
    with isolated(), suppress(*USER_ERRORS):  # the preflight shows these, at the sizes and in the modes of a plan
        module(x)
    return before.is_written()


class Watched:
    """A tensor, and what it was: its values, and how often it was written to in place."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.values = x.detach().clone()
        self.written = writes_so_far(x)

    def is_written(self) -> bool:
        """Whether the tensor was written to, or its values differ (``x.data`` is not counted by its version)."""
        same = torch.equal(self.x.detach().nan_to_num(), self.values.nan_to_num())
        return writes_so_far(self.x) != self.written or not same


@contextmanager
def isolated() -> Iterator[None]:
    """A user's code runs: on the CPU, with every generator at one seed, and what it prints goes to stderr."""
    with torch.device("cpu"), all_seeded(0), prints_to_stderr():
        yield


def change(module: nn.Module, x: Tensor) -> str | None:
    """How ``module`` changes the shape or the dtype of ``x``, in words; ``None`` if it keeps both. Raises ``Unfit``
    where it raises."""
    shape = tuple(x.shape)
    try:
        with isolated(), torch.no_grad():
            y = module(x)
    except USER_ERRORS as error:  # a user's module may raise anything on an unsuitable shape
        raise Unfit(f"{shape} raises {reason(error)}") from error
    if not isinstance(y, Tensor):
        return f"{shape} gives a {type(y).__name__}, not a tensor"
    if y.dtype != x.dtype:
        return f"{shape} of {named(x.dtype)} becomes {named(y.dtype)}"
    return None if y.shape == x.shape else f"{shape} becomes {tuple(y.shape)}"


@cache
def traits_of(factory: Factory, name: str, kind: Kind | None) -> Traits:
    """What is known of the layer of ``factory``, at the first width that it takes.

    Without ``kind``, it is the first one whose shape each module preserves without mixing a batch's items: attention
    and an LSTM read (batch, width) as one sequence of ``batch`` steps. Where nothing fits, raises ``BadInput`` with the
    result of each kind at width 64.
    """
    first: Unfit | None = None
    for width in WIDTHS:
        try:
            return traits_at(factory, name, width, kind)
        except Unfit as refused:
            first = first or refused
    assert first is not None
    raise first


def traits_at(factory: Factory, name: str, width: int, kind: Kind | None) -> Traits:
    """What is known of the layer at ``width``; raises ``BadInput`` where it changes the shape of each kind of input,
    and ``Unfit`` where it takes none of that width."""
    with isolated():
        modules = called(factory, width, name)
        dropout = without_dropout(modules)
    check_inputs(modules, factory, name)
    dtype = own_dtype(modules, name)
    faults: dict[Kind, str] = {}
    runs = False
    for one in (kind,) if kind else POSITIONS:
        for positions in (*POSITIONS[one], *(FIXED if one == "sequence" and width in WIDTHS[:2] else ())):
            if width in (2, *positions):  # equal axes may be taken for each other
                continue
            probe = LayerProbe(factory, name, width, one, positions, dtype)
            try:
                fault = probe.fault() or (None if kind else probe.mixing())
                runs = True
            except Unfit as refused:
                fault = str(refused)
            if fault is None:
                return Traits(
                    one,
                    len(modules),
                    width,
                    positions,
                    dtype,
                    probe.writes(),
                    any(gives_several(part, probe) for part in probe.modules()),
                    any(part.further is not None for part in probe.modules()),
                    dropout,
                )
            faults.setdefault(one, fault)
    reasons = "; ".join(f"{one}: {fault}" for one, fault in faults.items())
    raise (BadInput if runs else Unfit)(f"family {name!r} must preserve the shape of its input ({reasons})")


def gives_several(part: Adapted, probe: LayerProbe) -> bool:
    """Whether the layer in ``part`` returns several outputs."""
    given: list[object] = []
    with part.layer.register_forward_hook(lambda _, inputs, output: given.append(output)), isolated(), torch.no_grad():
        part(probe.zeros())
    return isinstance(given[0], tuple | list)


@cache
def part_parameters(probe: LayerProbe) -> tuple[int, ...]:
    """Parameters of each part of the layer, less those that an earlier part shares with it."""
    counts: list[int] = []
    counted: set[int] = set()
    for module in probe.modules():
        own = {one: numbers for one, numbers in trained_numbers(module).items() if one not in counted}
        counts.append(sum(own.values()))
        counted |= own.keys()
    return tuple(counts)


@cache
def width_fault(factory: Factory, name: str, kind: Kind, width: int) -> str | None:
    """Why the layer takes no input of ``width``, at the first of several lengths or sides; ``None`` where it does."""
    first: str | None = None
    for positions in dict.fromkeys((traits_of(factory, name, kind).positions, *POSITIONS[kind])):
        fault = input_fault(factory, name, kind, width, positions)
        if fault is None:
            return None
        first = first or fault
    return first


@cache
def input_fault(factory: Factory, name: str, kind: Kind, width: int, positions: Positions) -> str | None:
    """Why the layer takes no input of this size; ``None`` where it does."""
    try:
        return LayerProbe(factory, name, width, kind, positions, traits_of(factory, name, kind).dtype).fault()
    except BadInput as refused:  # the factory refuses this width
        return str(refused).removeprefix(f"family {name!r}: ")


@cache
def least_width(factory: Factory, name: str, kind: Kind) -> int:
    """The least width that the layer takes and whose double and treble it takes too; else the least of all; else 1.

    Multiples of the width are divisible by its heads and groups.
    """

    def fits(width: int) -> bool:
        return width_fault(factory, name, kind, width) is None

    fitting: Iterator[int] = (width for width in (*range(1, WIDTH + 1), *WIDTHS) if fits(width))
    least = 0
    for width in fitting:
        least = least or width
        if fits(2 * width) and fits(3 * width):
            return width
    return max(1, least)


def named(dtype: torch.dtype) -> str:
    """The name of ``dtype``, such as ``bfloat16``."""
    return str(dtype).removeprefix("torch.")
