"""Population: every member is trained as it would be alone, whatever happens to the others."""

from __future__ import annotations

import copy
import math
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from highway_bench.data import Split
from highway_bench.training import loop, population
from highway_bench.training.loop import Training
from highway_bench.training.population import Population
from highway_bench.training.recipe import Recipe
from highway_bench.training.stacked import NotStackable, Stacked
from tests.training.digits import training

TRIALS = (
    {"seed": 0, "rate": 0.1, "momentum": 0.9, "decay": 0.1},
    {"seed": 1, "rate": 0.02, "momentum": 0.5, "decay": 1.0, "weight_decay": 0.01},
    {"seed": 2, "rate": 0.3, "momentum": 0.0, "decay": 0.01, "weight_decay": 0.1},
)

COSINE = {"schedule": "cosine", "warm_up": 10}


def assert_same(one, other, rtol=1e-9):
    """Two trainings are equal in losses, weights, buffers, rate and evaluations."""
    assert list(one.losses) == pytest.approx(list(other.losses), rel=rtol, nan_ok=True)
    assert one.rate == other.rate
    assert len(one.times) == len(other.times)
    if math.isfinite(one.losses[-1]):
        torch.testing.assert_close(one.network.state_dict(), other.network.state_dict(), rtol=1e-6, atol=1e-9)
    assert [tuple(epoch) for epoch in one.epochs] == [
        (pytest.approx(epoch.loss, rel=1e-7), epoch.accuracy) for epoch in other.epochs
    ]


def both_ways(members):
    """Each member, trained with the others and trained alone."""
    together, alone = members(), members()
    Population(together).run()
    for member in alone:
        member.run()
    return list(zip(together, alone, strict=True))


def gentle(trial):
    return {**trial, "rate": 0.1 * trial["rate"]}


MIXED = {
    "schedules": [
        {"optimiser": "adamw", "clip": 0.5, **gentle(trial), **schedule}
        for trial, schedule in zip(
            (*TRIALS, TRIALS[1]), (COSINE, {"schedule": "cosine"}, {"warm_up": 39}, {}), strict=True
        )
    ],
    "gate biases": [
        {"seed": seed, "options": {"block_options": {"gate_bias": bias}}}
        for seed, bias in enumerate((-1.0, -4.0, "auto"))
    ],
    "clipped": [{"clip": 0.05, **trial} for trial in TRIALS],
    "epsilons": [
        {"optimiser": "adam", "epsilon": 1e-2, "epsilon_place": "outside", "seed": seed, "rate": 0.01}
        for seed in range(2)
    ],
}


@pytest.mark.parametrize("name", MIXED)
def test_members_follow_their_own_recipes(name):
    for one, other in both_ways(lambda: [training(**words) for words in MIXED[name]]):
        assert_same(one, other)


@pytest.mark.parametrize(
    ("name", "word", "other"), [("clipped", "clip", None), ("epsilons", "epsilon_place", "inside")]
)
def test_clipping_and_the_place_of_epsilon_matter(name, word, other):
    """So that the test above can fail."""
    one, another = (training(**words) for words in (MIXED[name][0], {**MIXED[name][0], word: other}))
    one.run()
    another.run()
    assert one.losses[-1] != pytest.approx(another.losses[-1], rel=1e-3)


def test_the_place_of_epsilon_is_that_of_the_whole_population():
    words = {"optimiser": "adam", "epsilon": 1e-2, "rate": 0.01}
    with pytest.raises(ValueError, match="epsilon"):
        Population([training(**words, epsilon_place=place) for place in ("inside", "outside")])


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize("block", ["plain", "highway", "highway-free", "pre-norm", "post-norm", "x0-mix", "hc-dynamic"])
def test_a_member_is_as_it_would_be_alone(block, optimiser):
    trials = [gentle(trial) for trial in TRIALS] if optimiser == "adam" else TRIALS
    words = {"optimiser": optimiser, "depth": 2, "steps": 15}
    for one, other in both_ways(lambda: [training(block, **words, **trial) for trial in trials]):
        assert len(one.losses) == 15
        assert one.losses[-1] < one.losses[0]
        assert_same(one, other, rtol=1e-7)  # rounding grows over the steps, by how much depends on the processor


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_a_diverged_member_is_removed_and_does_not_affect_the_others(optimiser):
    trials = [gentle(trial) for trial in TRIALS]
    trials.insert(1, {"seed": 5, "rate": 1e200, "momentum": 0.9, "decay": 1.0})
    pairs = both_ways(lambda: [training("residual", optimiser=optimiser, steps=70, **trial) for trial in trials])
    for one, other in pairs:
        assert_same(one, other)
        assert one.history() == pytest.approx(other.history(), nan_ok=True)
    assert [len(one.losses) for one, _ in pairs] == [70, 25, 70, 70]
    assert not math.isfinite(pairs[1][0].losses[-1])


def test_epochs_are_evaluated_and_last_batches_trained():
    words = {"batch_size": 400, "last_batch": "keep", "evaluated": True, "steps": 11}
    for one, other in both_ways(lambda: [training(**words, **trial) for trial in TRIALS]):
        assert len(one.epochs) == 11 // one.steps_per_epoch > 1
        assert_same(one, other)
        assert one.epoch_losses() == pytest.approx(other.epoch_losses())


# A CPU's attention kernel has no batching rule: vmap runs it member by member, and says so.
@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize(
    ("family", "dataset", "data"),
    [
        ("dense-pair", "digits", {}),
        ("conv", "digits", {}),
        ("mlp", "digits", {}),
        ("attention", "adding", {"length": 6}),
        ("transformer", "copy", {"length": 4}),
    ],
)
def test_other_families_and_data(family, dataset, data):
    """Generated data depend on the seed, so they differ between members."""
    words = {"depth": 2, "batch_size": 4, "optimiser": "adam", "rate": 0.003, "steps": 6}
    for one, other in both_ways(
        lambda: [training("pre-norm", family, dataset=dataset, data=data, seed=seed, **words) for seed in range(2)]
    ):
        assert_same(one, other)


def test_a_members_time_is_its_share(monkeypatch):
    ticks = iter(range(0, 1000, 100))  # each chunk of 20 steps lasts 100 s
    monkeypatch.setattr(population.time, "perf_counter", lambda: float(next(ticks)))
    members = [training(seed=seed, steps=20) for seed in range(5)]
    Population(members).run()
    assert list(members[0].times) == pytest.approx([1.0 * (step + 1) for step in range(20)])


class Unusual(nn.Module):
    """A linear map with one trait that a stack would compute once for all networks, or lose."""

    seen: Tensor

    def __init__(self, trait: str) -> None:
        super().__init__()
        self.map, self.other, self.trait, self.passes = nn.Linear(3, 3), nn.Linear(3, 3), trait, 0
        self.register_buffer("seen", torch.zeros(()))
        if trait == "tie":
            self.other.weight = self.map.weight
        elif trait == "tied buffer":
            self.other.register_buffer("seen", self.seen)
        elif trait == "mask":
            self.mask = torch.rand(3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.map(x)
        if self.trait == "draw":
            return self.other(y) + torch.rand_like(y)
        if self.trait == "write" and self.training:
            self.seen.add_(1)
        elif self.trait == "exchange" and self.training:
            self.seen = self.seen + 1
        elif self.trait == "count":
            self.passes += 1
        return y if self.trait == "unused" else self.other(y) + self.seen


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1)), "random"),
        (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), "batch statistics"),
        (nn.LSTM(3, 3), "LSTM"),
        (nn.Linear(3, 3).to(torch.bfloat16), "half"),
        (Unusual("draw"), "random"),
        (Unusual("write"), "buffers"),
        (Unusual("exchange"), "buffers"),
        (Unusual("count"), "numbers"),
        (Unusual("tie"), "shared"),
        (Unusual("tied buffer"), "shared"),
        (Unusual("mask"), "mask"),
        (Unusual("unused"), "gradient"),
    ],
)
def test_what_is_not_stacked(network, says):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(NotStackable, match=says):
        Population([plainly(network)])
    torch.testing.assert_close(network.state_dict(), before, rtol=0, atol=0)


def test_networks_whose_modules_hold_other_numbers_are_not_stacked():
    with pytest.raises(NotStackable, match="numbers"):
        Population([plainly(nn.LayerNorm(3, eps=eps)) for eps in (1e-5, 1e-3)])
    networks = [nn.Linear(3, 3) for _ in range(2)]
    for index, network in enumerate(networks):
        network.scales = {"each": [1.0, float(index)]}
    with pytest.raises(NotStackable, match="numbers"):
        Population([plainly(network) for network in networks])


@pytest.mark.parametrize("padding", [0, None])
def test_an_embedding_with_padding_is_not_stacked(padding):
    """Under vmap, the padding's row would be trained in every network except the first."""
    tokens = Split(torch.arange(18).reshape(9, 2) % 5, torch.arange(9) % 2)

    def members():
        torch.manual_seed(1)
        return [
            plainly(
                nn.Sequential(nn.Embedding(5, 4, padding_idx=padding), nn.Flatten(), nn.Linear(8, 2)).double(), tokens
            )
            for _ in range(2)
        ]

    if padding is None:
        for one, other in both_ways(members):
            assert_same(one, other)
    else:
        with pytest.raises(NotStackable, match="padding"):
            Population(members())


def test_constant_buffers_and_inactive_dropout_are_stacked():
    """Buffers may differ between members. A dropout with probability 0 draws no random numbers."""
    networks = [nn.Sequential(Unusual("nothing"), nn.Dropout(0.0), nn.LayerNorm(3)).double() for _ in range(2)]
    for index, network in enumerate(networks):
        network[0].seen.fill_(index)
    for one, other in both_ways(lambda: [plainly(copy.deepcopy(network)) for network in networks]):
        assert_same(one, other)


def plainly(network, split=None):
    split = split or Split(torch.eye(3).repeat(3, 1), torch.arange(9) % 2)
    return Training(network, split, "class", Recipe(steps=4), 4, 0)


def test_a_full_device_is_not_taken_for_a_missing_batching_rule(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stacked, "__call__", full)
    with pytest.raises(torch.OutOfMemoryError):
        Population([training(seed=seed) for seed in range(2)])


@pytest.mark.gpu
@pytest.mark.parametrize("words", [{"optimiser": "sgd"}, {"optimiser": "adam"}, {"optimiser": "adamw", **COSINE}])
def test_a_graphed_step_equals_the_eager_one(words):
    """On a CUDA device the step is captured as a graph, and captured again when a member diverges."""
    words = {"steps": 70, "batch_size": 400, "last_batch": "keep", **words}
    trials = [*map(gentle, TRIALS), {"seed": 5, "rate": 1e200}]
    together, alone = (
        [training("residual", device=device, **words, **trial) for trial in trials] for device in ("cuda", "cpu")
    )
    Population(together).run()
    for one, other in zip(together, alone, strict=True):
        other.run()
        assert list(one.losses) == pytest.approx(list(other.losses), rel=1e-7, nan_ok=True)


def test_a_member_says_which_operators_are_not_repeatable(monkeypatch):
    @contextmanager
    def lacking(device):
        names = set()
        yield names
        names.add(f"some on {device}")

    for module in (population, loop):
        monkeypatch.setattr(module, "repeatable", lacking)
    together, alone = [training(seed=seed, steps=2) for seed in range(2)], training(steps=2)
    Population(together).run()
    alone.run()
    assert [one.unrepeatable for one in (*together, alone)] == [{"some on cpu"}] * 3
