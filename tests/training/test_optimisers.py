"""Stacked optimisers: every member is updated as ``torch.optim`` would update it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LinearLR, LRScheduler, SequentialLR

from highway_bench.blocks import scalar_names
from highway_bench.network import build
from highway_bench.training.optimisers import stacked_optimiser
from highway_bench.training.recipe import Recipe

SHAPES = ((3, 4), (3,), (2, 3), (2, 2, 2))
STEPS = 7


def moved_alone(recipe: Recipe, start: list[torch.Tensor], gradients: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """``start`` after updates by torch's own optimiser, not in its fused form."""
    network = torch.nn.ParameterList([torch.nn.Parameter(tensor.clone()) for tensor in start])
    groups = [
        {"params": [p for p in network if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in network if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser: torch.optim.Optimizer
    if recipe.optimiser == "sgd":
        optimiser = torch.optim.SGD(groups, lr=recipe.rate, momentum=recipe.momentum)
    else:
        make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimiser]
        optimiser = make(groups, lr=recipe.rate, eps=recipe.epsilon)
    schedule = torchs_schedule(optimiser, recipe)
    for number, step in enumerate(gradients, start=1):
        for group in optimiser.param_groups if recipe.epsilon_place == "outside" else []:
            group["eps"] = recipe.epsilon / (1 - 0.999**number) ** 0.5
        for parameter, gradient in zip(network, step, strict=True):
            parameter.grad = gradient.clone()
        if recipe.clip is not None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip)
        optimiser.step()
        schedule.step()
    return [parameter.detach() for parameter in network]


def torchs_schedule(optimiser: torch.optim.Optimizer, recipe: Recipe) -> LRScheduler:
    """The recipe's schedule by torch's own ones."""
    falling = recipe.steps - recipe.warm_up
    fall: LRScheduler
    if recipe.schedule == "cosine":
        fall = CosineAnnealingLR(optimiser, falling, eta_min=recipe.decay * recipe.rate)
    else:
        fall = ExponentialLR(optimiser, recipe.decay ** (1 / falling))
    if not recipe.warm_up:
        return fall
    rise = LinearLR(optimiser, 1 / (recipe.warm_up + 1), 1.0, recipe.warm_up)
    return SequentialLR(optimiser, [rise, fall], [recipe.warm_up])


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("schedule", ["exponential", "cosine"])
@pytest.mark.parametrize("warm_up", [0, 3])
@pytest.mark.parametrize(
    ("optimiser", "epsilon_place"),
    [("sgd", "inside"), ("adam", "inside"), ("adam", "outside"), ("adamw", "inside")],
)
def test_every_member_moves_as_torch_moves_it(
    optimiser: Any, epsilon_place: Any, schedule: Any, warm_up: int, clip: float | None
) -> None:
    recipes = [
        Recipe(
            optimiser=optimiser,
            rate=rate,
            momentum=momentum,
            decay=decay,
            weight_decay=weight,
            clip=clip,
            epsilon=0.01,
            epsilon_place=epsilon_place,
            schedule=schedule,
            warm_up=warm_up,
            steps=STEPS,
        )
        for rate, momentum, decay, weight in ((0.1, 0.9, 0.1, 0), (0.01, 0, 1, 0.2), (1, 0.5, 0.5, 0.01))
    ]
    source = torch.Generator().manual_seed(0)

    def drawn() -> list[list[torch.Tensor]]:
        return [[torch.randn(shape, generator=source, dtype=torch.float64) for shape in SHAPES] for _ in recipes]

    start, gradients = drawn(), [drawn() for _ in range(STEPS)]
    parameters = [torch.stack(tensors) for tensors in zip(*start, strict=True)]
    make = stacked_optimiser(optimiser)
    state = {slot: [torch.zeros_like(parameter) for parameter in parameters] for slot in make.slots}
    stacked = make(parameters, [1.0] * len(parameters), recipes, state, 0)
    for step in gradients:
        together = [torch.stack(tensors) for tensors in zip(*step, strict=True)]
        before = [gradient.clone() for gradient in together]
        stacked.update(together)
        assert all(torch.equal(one, other) for one, other in zip(together, before, strict=True))
    for index, recipe in enumerate(recipes):
        alone = moved_alone(recipe, start[index], [step[index] for step in gradients])
        for mine, theirs in zip(parameters, alone, strict=True):
            torch.testing.assert_close(mine[index], theirs, rtol=1e-12, atol=1e-14)
        assert float(stacked.rates[index]) == pytest.approx(recipe.rate * recipe.decay)


def test_scalars_that_multiply_the_stream_train_at_a_hundredth_of_the_rate() -> None:
    network = build("x0-mix", "dense", width=4, depth=2, seed=1)
    groups = Recipe(optimiser="adamw", weight_decay=0.1).optimiser_for(network).param_groups
    by_share = {group["share"]: (group["weight_decay"], len(group["params"])) for group in groups}
    assert by_share[0.01] == (0.0, 2)
    assert scalar_names(network) == {"joins.0.r", "joins.1.r"}
    assert scalar_names(build("pre-norm", "dense", width=4, depth=2)) == set()
