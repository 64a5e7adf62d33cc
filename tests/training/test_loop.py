"""One training: recipes, batches, the optimiser's groups, the loss and what evaluation counts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from highway_bench.blocks import scalar_names
from highway_bench.data import Split
from highway_bench.errors import BadInput
from highway_bench.network import build
from highway_bench.tasks.from_cell import recipe_from
from highway_bench.training.evaluation import evaluate, loss_of
from highway_bench.training.loop import Training
from highway_bench.training.recipe import Recipe
from tests.cells import on_digits


def training(items=10, batch_size=4, seed=0, network=None, **recipe):
    source = torch.Generator().manual_seed(1)
    split = Split(torch.randn(items, 3, generator=source), torch.randint(0, 2, (items,), generator=source))
    torch.manual_seed(5)
    return Training(network or nn.Linear(3, 2), split, "class", Recipe(**recipe), batch_size, seed)


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 0},
        {"steps": True},
        {"rate": math.inf},
        {"decay": 1.5},
        {"optimiser": "sgdm"},
        {"schedule": "linear"},
        {"warm_up": 7, "steps": 7},
        {"momentum": 1.0},
        {"weight_decay": -1e-4},
        {"epsilon": 0.0},
        {"epsilon_place": "between"},
        {"clip": 0.0},
    ],
)
def test_what_no_optimiser_can_use(options):
    with pytest.raises(BadInput, match=next(iter(options))):
        Recipe(**options)


def test_a_cells_recipe_holds_more_than_training():
    one = on_digits(rate=0.5, steps=7, threshold=0.1, verdict=False)
    assert recipe_from(one) == Recipe(rate=0.5, steps=7)


def test_batches_are_whole_shuffled_epochs():
    run = training(items=10, batch_size=4)
    epochs = [torch.cat([next(run.batches), next(run.batches)]) for _ in range(3)]
    for epoch in epochs:
        assert len(epoch.unique()) == 8  # two whole batches of ten items, none twice
    assert not torch.equal(epochs[0], epochs[1])
    assert torch.equal(next(training(seed=3).batches), next(training(seed=3).batches))
    assert not torch.equal(next(training(seed=3).batches), next(training(seed=4).batches))


def test_layers_that_draw_numbers_follow_the_seed():
    def losses(seed, state):
        torch.manual_seed(7)
        run = training(network=nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)), seed=seed, steps=4)
        torch.manual_seed(state)  # what happened in the process before
        before = torch.get_rng_state()
        run.run()
        assert torch.equal(torch.get_rng_state(), before)
        return run.history()

    assert losses(seed=1, state=10) == losses(seed=1, state=20)
    assert losses(seed=1, state=10) != losses(seed=2, state=10)


@pytest.mark.parametrize(
    ("words", "rates"),
    [
        ({"schedule": "cosine"}, [1, 1 - 0.9 * (1 - 0.5**0.5) / 2, 0.55, 0.1 + 0.9 * (1 - 0.5**0.5) / 2, 0.1]),
        ({"schedule": "cosine", "warm_up": 2}, [1 / 3, 2 / 3, 1, 0.55, 0.1]),
        ({"schedule": "exponential", "warm_up": 2}, [1 / 3, 2 / 3, 1, 0.1**0.5, 0.1]),
        ({"schedule": "exponential", "warm_up": 3}, [1 / 4, 2 / 4, 3 / 4, 1, 0.1]),
        ({"schedule": "exponential", "decay": 1.0}, [1] * 5),
    ],
)
def test_the_learning_rate_rises_and_falls(words, rates):
    assert Recipe(rate=2.0, steps=4, **words).rates == pytest.approx([2 * rate for rate in rates])


class Exploding(nn.Module):
    """Gives NaN from its third step on."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(3, 2)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y = self.map(x)
        return y if self.calls < 3 else y * math.nan


def test_a_run_stops_soon_after_the_loss_is_lost():
    run = training(network=Exploding(), steps=500)
    run.run()
    assert len(run.losses) == 25  # the first check for finite losses
    assert [math.isfinite(loss) for loss in run.history()] == [True, True, False]


def test_losses():
    outputs = torch.randn(6, 5)
    classes = torch.tensor([0, 1, 2, 3, 4, 0])
    expected = -torch.log_softmax(outputs, -1)[torch.arange(6), classes].mean()
    torch.testing.assert_close(loss_of(outputs, classes, "class"), expected)
    torch.testing.assert_close(loss_of(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), "scalar"), torch.tensor(2.5))
    tokens = torch.tensor([[0, -100, 2], [-100, -100, 4]])
    picked = outputs.view(2, 3, 5)[[0, 0, 1], [0, 2, 2]]
    torch.testing.assert_close(
        loss_of(outputs.view(2, 3, 5), tokens, "token"), nn.functional.cross_entropy(picked, torch.tensor([0, 2, 4]))
    )


class GivenOutputs(nn.Module):
    """Returns its input; its one parameter only gives its device."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        assert not self.training
        return x * self.scale


def test_evaluation_counts_every_item_once():
    outputs = torch.eye(3)[torch.tensor([0, 1, 2, 0, 1])] * 9
    split = Split(outputs, torch.tensor([0, 1, 2, 0, 2]))
    whole, parts = (evaluate(GivenOutputs(), split, "class", batch_size=size) for size in (5, 2))  # a last batch of one
    assert whole.accuracy == parts.accuracy == 0.8
    assert whole.loss == pytest.approx(parts.loss)
    assert evaluate(GivenOutputs(), split, "class", at_most=4).accuracy == 1.0


def test_answers_to_tokens_are_over_those_asked_for():
    outputs = torch.eye(3)[torch.tensor([[0, 1, 2], [2, 2, 2]])]
    split = Split(outputs, torch.tensor([[0, -100, 1], [-100, -100, 2]]))
    whole, parts = (evaluate(GivenOutputs(), split, "token", batch_size=size) for size in (2, 1))
    assert whole.accuracy == parts.accuracy == pytest.approx(2 / 3)
    assert whole.loss == pytest.approx(parts.loss)  # two targets in one batch, one in the other
    unasked = Split(split.inputs, split.targets.index_fill(0, torch.tensor([1]), -100))
    assert evaluate(GivenOutputs(), unasked, "token", batch_size=1).accuracy == 0.5


def test_a_scalar_and_outputs_that_are_no_numbers_have_no_accuracy():
    assert evaluate(GivenOutputs(), Split(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0])), "scalar") == (2.0, None)
    lost = evaluate(GivenOutputs(), Split(torch.full((2, 3), math.nan), torch.tensor([0, 1])), "class")
    assert (math.isnan(lost.loss), lost.accuracy) == (True, None)


def test_scalars_that_multiply_the_stream_train_at_a_hundredth_of_the_rate():
    network = build("x0-mix", "dense", width=4, depth=2, seed=1)
    groups = Recipe(optimiser="adamw", weight_decay=0.1).optimiser_for(network).param_groups
    by_share = {group["share"]: (group["weight_decay"], len(group["params"])) for group in groups}
    assert by_share[0.01] == (0.0, 2)
    assert scalar_names(network) == {"joins.0.r", "joins.1.r"}
    assert scalar_names(build("pre-norm", "dense", width=4, depth=2)) == set()
