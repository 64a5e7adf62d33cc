"""Causality: whether an output at one step depends on later steps, found by changing those."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import torch
from torch import Tensor, nn

from highway_bench.families._site import Site
from highway_bench.families.base import Family
from highway_bench.families.own_layer import rebuilt
from highway_bench.families.seeding import all_seeded, seeded
from highway_bench.measure.precision import torch_dtype
from highway_bench.terminal import prints_to_stderr

STEPS = 16  # of the sequences that are tried
LONG_STEPS = 64  # where a layer does not take so few
NOISE = 0.1  # standard deviation of what is added to the parameters


def is_causal(make: Callable[[], nn.Module], x: Tensor) -> bool:
    """Whether no output of a module of ``make`` at a step depends on later steps of its input, for ``x`` (batch, steps,
    …).

    For every step but the first, the inputs from that step on are exchanged for those of ``x`` reversed, and the
    outputs (batch, steps, …) before the step must stay equal. The values of ``x`` must differ between steps.

    Modules are tried in training mode, where a norm over the batch reads all of its steps. Their parameters get noise:
    a map that starts at zero would hide what it reads. Random layers draw the same numbers in every call.
    """
    trial = make().train()
    with seeded(0), torch.no_grad():
        for parameter in trial.parameters():
            if parameter.is_floating_point() or parameter.is_complex():
                parameter.add_(torch.randn_like(parameter), alpha=NOISE)
    expected, others = outputs_of(make, trial, x), x.flip(0, 1)
    for step in range(1, x.shape[1]):
        outputs = outputs_of(make, trial, torch.cat((x[:, :step], others[:, step:]), dim=1))
        if not torch.allclose(outputs[:, :step], expected[:, :step], rtol=1e-5, atol=1e-6, equal_nan=True):
            return False
    return True


def outputs_of(make: Callable[[], nn.Module], like: nn.Module, x: Tensor) -> Tensor:
    """The outputs of a new module in the state of ``like``, so that no call changes what the next one computes."""
    with all_seeded(1), torch.no_grad(), prints_to_stderr():
        y: Tensor = rebuilt(make, like)(x)
    return y


@cache
def reads_ahead(family: Family, width: int) -> bool:
    """Whether a layer's output at one step depends on later steps, tried on each of its transforms by ``is_causal``."""
    return any(looks_ahead(partial(part.transform, Site(part, width)), family, width) for part in family.sublayers)


def looks_ahead(make: Callable[[], nn.Module], family: Family, width: int) -> bool:
    """Whether a module of ``make`` that takes the family's sequences is not ``is_causal``."""
    steps = STEPS if family.input_fault(width, (STEPS,)) is None else LONG_STEPS
    with torch.device("cpu"), seeded(0):
        return not is_causal(make, torch.randn(2, steps, width).to(torch_dtype(family.dtype or "float32")))
