"""Joinable: whether a user's layer can be joined at all. Each reason against it is one line."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

import torch
from torch import Tensor, nn

from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families import Family, Site
from highway_bench.families.seeding import all_seeded, seeded
from highway_bench.terminal import prints_to_stderr

BATCH = 4  # items of the inputs that are tried


def check_joinable(family: Family, width: int) -> None:
    """Raise ``BadInput`` for a layer that cannot be compared under several connections.

    Such a layer draws random numbers in ``forward``, has a state that one call leaves to the next (buffers that only
    training changes are allowed: a batch norm's statistics, a spectral norm's vectors), gives values that are not
    finite, has no parameters, or shares them with every other layer.
    """
    with torch.device("cpu"), seeded(0):
        x, other = family.small_example(BATCH, width), family.small_example(BATCH, width)
        modules = modules_of(family, width)
        for module in modules:
            reason = fault(module, x, other)
            if reason is not None:
                raise BadInput(f"family {family.name!r} cannot be joined: it {reason}")
        again = modules_of(family, width)
    own = {id(parameter) for module in modules for parameter in module.parameters()}
    if any(id(parameter) in own for parameter in chain.from_iterable(module.parameters() for module in again)):
        raise BadInput(f"family {family.name!r} cannot be joined: its factory returns the same parameters every time")
    if not own:
        raise BadInput(f"family {family.name!r} cannot be joined: it has no parameters, so there is nothing to train")


def modules_of(family: Family, width: int) -> list[nn.Module]:
    """Fresh modules of one layer."""
    return [part.transform(Site(part, width)) for part in family.sublayers]


def fault(module: nn.Module, x: Tensor, other: Tensor) -> str | None:
    """Why ``module`` cannot be joined, in words that follow "it"; ``None`` if it can.

    It runs several times, in training mode from the same buffers; a copy is not needed, and some modules have none.
    """
    buffers = {name: value.clone() for name, value in module.named_buffers()}
    module.train()
    before, _, after, drawn = (output(module, *given, buffers) for given in ((x, 1), (other, 1), (x, 1), (x, 2)))
    module.eval()
    evaluated, _, again = (output(module, given, 1) for given in (x, other, x))
    if not bool(torch.isfinite(before).all()):
        return "gives values that are not finite"
    if not same(before, after) or not same(evaluated, again):
        return "keeps a state, or draws from a generator of its own: its output depends on the calls before"
    if not same(after, drawn):
        return "draws random numbers in forward"
    return None


def output(module: nn.Module, x: Tensor, seed: int, buffers: Mapping[str, Tensor] = MappingProxyType({})) -> Tensor:
    """The output for ``x``, with every random generator at ``seed``, from the values of ``buffers``."""
    with all_seeded(seed), prints_to_stderr(), torch.no_grad():
        for name, value in buffers.items():
            module.get_buffer(name).copy_(value)
        try:
            y: Tensor = module(x.clone())
        except USER_ERRORS as error:  # the user's code
            raise BadInput(f"a layer of {tuple(x.shape)} raises {type(error).__name__}: {error}") from error
    return y


def same(one: Tensor, other: Tensor) -> bool:
    """Whether two outputs are equal, up to the rounding of parallel sums."""
    return torch.allclose(one, other, rtol=1e-5, atol=1e-7, equal_nan=True)
