"""Causality: whether an output at one step depends on later steps, found by changing those."""

from __future__ import annotations

import copy
from functools import cache

import torch
from torch import Tensor, nn

from highway_bench.families._site import Site
from highway_bench.families.base import Family
from highway_bench.families.seeding import seeded

STEPS = 16  # of the sequences that are tried
NOISE = 0.1  # standard deviation of what is added to the parameters


def is_causal(module: nn.Module, x: Tensor) -> bool:
    """Whether no output of ``module`` at a step depends on later steps of its input, for ``x`` (batch, steps, …).

    For every step but the first, the inputs from that step on are exchanged for those of ``x`` reversed, and the
    outputs (batch, steps, …) before the step must stay equal. The values of ``x`` must differ between steps.

    A copy is tried, in training mode, where a norm over the batch reads all of its steps. Its parameters get noise: a
    map that starts at zero would hide what it reads. Random layers draw the same numbers in every call.
    """
    trial = copy.deepcopy(module).train()
    with seeded(0), torch.no_grad():
        for parameter in trial.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=NOISE)
    expected, others = outputs_of(trial, x), x.flip(0, 1)
    for step in range(1, x.shape[1]):
        outputs = outputs_of(trial, torch.cat((x[:, :step], others[:, step:]), dim=1))
        if not torch.allclose(outputs[:, :step], expected[:, :step], rtol=1e-5, atol=1e-6, equal_nan=True):
            return False
    return True


def outputs_of(module: nn.Module, x: Tensor) -> Tensor:
    """The outputs of a copy of ``module``, so that no call changes what the next one computes."""
    with seeded(1), torch.no_grad():
        y: Tensor = copy.deepcopy(module)(x)
    return y


@cache
def reads_ahead(family: Family, width: int) -> bool:
    """Whether a layer's output at one step depends on later steps, tried on each of its transforms by ``is_causal``."""
    with torch.device("cpu"), seeded(0):
        x = torch.randn(2, STEPS, width)
        return any(not is_causal(part.transform(Site(part, width)), x) for part in family.sublayers)
