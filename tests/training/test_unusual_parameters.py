"""Parameters that are complex, frozen or without a gradient: each step is that of ``torch.optim``."""

import pytest
import torch
from torch import Tensor, nn

from highway_bench.data import Split
from highway_bench.measure.precision import cast
from highway_bench.training.evaluation import loss_of
from highway_bench.training.loop import Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import BETAS, Recipe
from highway_bench.training.stacked import NotStackable
from tests import unusual_layers

WIDTH, STEPS = 4, 10
OPTIMISERS = (
    {"optimiser": "sgd", "rate": 0.1, "weight_decay": 0.1},
    {"optimiser": "sgd", "rate": 0.1, "momentum": 0.0, "clip": 0.1},
    {"optimiser": "adam", "rate": 0.01, "weight_decay": 0.1, "clip": 0.1},
    {"optimiser": "adam", "rate": 0.01, "epsilon": 1e-2, "epsilon_place": "outside"},
    {"optimiser": "adamw", "rate": 0.01, "weight_decay": 0.5, "schedule": "cosine", "warm_up": 3},
)


def training(layer, seed=0, steps=STEPS, **recipe):
    """The training of stem, one unusual layer and head in float64, on batches of two items."""
    torch.manual_seed(seed)
    inner = getattr(unusual_layers, layer)(WIDTH)
    network = cast(nn.Sequential(nn.Linear(3, WIDTH), inner, nn.Linear(WIDTH, 2)), torch.float64)
    source = torch.Generator().manual_seed(1)
    split = Split(torch.randn(12, 3, generator=source), torch.randint(0, 2, (12,), generator=source))
    return Training(network, split, "class", Recipe(steps=steps, **recipe), 2, seed)


def torchs_optimiser(network, recipe):
    """torch's own optimiser of ``recipe`` for all that is not frozen, in its plainest form."""
    trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups = [
        {"params": [one for one in trained if one.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [one for one in trained if one.ndim <= 1], "weight_decay": 0.0},
    ]
    if recipe.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=recipe.rate, momentum=recipe.momentum, foreach=False)
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[recipe.optimiser]
    return make(groups, lr=recipe.rate, betas=BETAS, eps=recipe.epsilon, foreach=False)


def slots_of(optimiser, network):
    """Copies of the optimiser's states, by parameter and slot."""
    return {
        f"{name} {slot}": value.clone().double() if slot == "step" else value.clone()
        for name, parameter in network.named_parameters()
        for slot, value in optimiser.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


@pytest.mark.parametrize("recipe", OPTIMISERS, ids=str)
@pytest.mark.parametrize("layer", ["choosy", "late", "experts", "low_rank", "complex_filter", "spectral"])
def test_ten_steps_are_those_of_torch(layer, recipe):
    run, reference = training(layer, **recipe), training(layer, **recipe)
    network, words = reference.network, reference.recipe
    torchs = torchs_optimiser(network, words)
    without_gradient = 0
    for step in range(STEPS):
        before = {name: value.clone() for name, value in run.network.state_dict().items()}
        slots = slots_of(run.optimiser, run.network)
        run.step()
        rows = next(reference.batches)
        torchs.zero_grad()
        loss_of(network(run.train.inputs[rows].double()), run.train.targets[rows], "class").backward()
        if words.clip is not None:
            nn.utils.clip_grad_norm_(network.parameters(), words.clip)
        for group in torchs.param_groups:
            group["lr"] = words.rates[step]
            if words.epsilon_place == "outside":
                group["eps"] = words.epsilon_at(step + 1)
        torchs.step()
        mine = slots_of(run.optimiser, run.network)
        torch.testing.assert_close(run.network.state_dict(), network.state_dict(), rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(mine, slots_of(torchs, network), rtol=1e-10, atol=1e-12)
        still = [name for name, parameter in run.network.named_parameters() if parameter.grad is None]
        assert all(torch.equal(run.network.state_dict()[name], before[name]) for name in still)
        assert all(torch.equal(value, slots[key]) for key, value in mine.items() if key.split()[0] in still)
        without_gradient += len(still)
    assert bool(without_gradient) == (layer not in ("complex_filter", "spectral"))


@pytest.mark.parametrize("recipe", OPTIMISERS, ids=str)
def test_frozen_parts_stay_in_a_population(recipe):
    together, alone = ([training("low_rank", seed, **recipe) for seed in range(2)] for _ in range(2))
    Population(together).run()
    for one, other in zip(together, alone, strict=True):
        other.run()
        torch.testing.assert_close(one.network.state_dict(), other.network.state_dict(), rtol=1e-9, atol=1e-12)
        assert torch.equal(one.network[1].order, torch.arange(WIDTH).flip(0))


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("complex_filter", "complex"),
        ("experts", "dynamic shape"),
        ("spectral", "buffers"),
        ("normed_classic", "weight"),
    ],
)
def test_what_is_not_stacked(layer, says):
    with pytest.raises(NotStackable, match=says):
        Population([training(layer, seed) for seed in range(2)])


def test_a_population_ends_with_a_step_that_leaves_out_a_parameter():
    """What the layer calls is not known before."""
    members = [training("choosy", seed) for seed in range(2)]
    for member in members:
        member.network[1].turns = iter([(0, 1)] * 6 + [(0,)] * 10)
    with pytest.raises(NotStackable, match="no gradient"):
        Population(members).run()
