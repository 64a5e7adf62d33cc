"""Populations: which cells train together, and that each has the rows that it would have alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.tasks import Outcome, Skip, tasks, trainability
from highway_bench.tasks import training_cells as populations
from highway_bench.training.checkpoint import CheckpointFolder

MakeCell = Callable[..., Cell]
TASK = tasks.get("trainability")
SECONDS = {"seconds_to_threshold", "step_seconds", "together"}


@pytest.fixture
def digits(cell: MakeCell) -> Callable[..., Cell]:
    def make(block: str = "highway", family: str = "dense", **changes: Any) -> Cell:
        defaults: dict[str, Any] = {
            "width": 8,
            "batch_size": 50,
            "dataset": "digits",
            "steps": 20,
            "rate": 0.05,
            "dtype": "float64",
            "together": 8,
        }
        return cell("trainability", block, family, **{**defaults, **changes})

    return make


def values(outcome: Outcome) -> dict[tuple[str, float], Any]:
    """What was measured, seconds aside; sums are taken in another order."""
    assert outcome.error is None
    return {
        (one.metric, one.index): one.value if one.value is None else pytest.approx(one.value, rel=1e-7)
        for one in outcome.measurements
        if one.metric not in SECONDS
    }


def count(outcome: Outcome) -> float | None:
    return next(one.value for one in outcome.measurements if one.metric == "together")


def test_members_have_the_rows_they_would_have_alone(digits: MakeCell) -> None:
    cells = [
        digits("residual", seed=seed, rate=rate, evaluate="epoch", batch_size=300)
        for seed, rate in enumerate((0.01, 1e200, 0.03))
    ]
    assert len({TASK.group(cell) for cell in cells}) == 1
    as_one = list(TASK.measure(cells))
    assert [outcome.cell for outcome in as_one] == cells
    for outcome in as_one:
        (alone,) = TASK.measure([outcome.cell])
        assert (count(outcome), count(alone)) == (3.0, 1.0)
        assert values(outcome) == values(alone)
        assert outcome.params == alone.params
        assert [one.status for one in outcome.measurements] == [one.status for one in alone.measurements]


def test_cells_of_one_group(digits: MakeCell) -> None:
    one = digits(trial=0, seed=1000)
    same = [
        digits(trial=7, seed=1007),
        digits(trial=1, rate=0.2, momentum=0.5, decay=1.0, weight_decay=0.1),
        digits(trial=1, block_options={"gate_bias": -3.0}),
    ]
    other = [
        digits(trial=8),
        digits(seed=1000),
        digits(trial=0, steps=21),
        digits("plain", trial=0),
        digits(trial=0, depth=3),
        digits(trial=0, family_options={"activation": "tanh"}),
        digits(trial=0, optimiser="adam"),
        digits(trial=0, together=9),
        digits(trial=0, dtype="float32"),
    ]
    assert {TASK.group(cell) for cell in same} == {TASK.group(one)}
    assert TASK.group(one) not in {TASK.group(cell) for cell in other}
    assert TASK.group(digits(seed=0)) == TASK.group(digits(seed=7)) != TASK.group(digits(seed=8))


def test_a_gpu_takes_all_that_vmap_runs(digits: MakeCell) -> None:
    for family in ("conv", "attention", "mlp"):
        one, other = (digits(family=family, device="cuda", seed=seed) for seed in range(2))
        assert TASK.group(one) == TASK.group(other)


def test_the_size_of_populations(digits: MakeCell, tmp_path: Path) -> None:
    cells = [digits(trial=trial) for trial in range(40)]
    assert [len(population) for population in populations.populations_of(cells, None)] == [14, 14, 12]
    checkpoints = CheckpointFolder(tmp_path, {cell: str(cell.trial) for cell in cells})
    assert [len(population) for population in populations.populations_of(cells, checkpoints)] == [14, 14, 12]
    assert [
        len(population) for population in populations.populations_of([cell.but(device="cuda") for cell in cells], None)
    ] == [40]


def test_an_error_is_its_cells_own(digits: MakeCell) -> None:
    cells = [digits(seed=0), digits(seed=1, batch_size=5_000), digits(seed=2)]
    outcomes = {outcome.cell.seed: outcome for outcome in TASK.measure(cells)}
    assert isinstance(outcomes[1].error, BadInput)
    assert (count(outcomes[0]), count(outcomes[2])) == (2.0, 2.0)
    (skipped,) = TASK.measure([digits(dataset="adding")])
    assert isinstance(skipped.error, Skip)


@pytest.mark.parametrize("method", ["prepare", "measurements"])
def test_a_cell_that_leaves_python_costs_no_other(
    digits: MakeCell, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    real = getattr(TASK, method)

    def leaving(*given: Any) -> Any:
        if given[-1].seed == 1:
            sys.exit(7)
        return real(*given)

    monkeypatch.setattr(TASK, method, leaving)
    outcomes = {outcome.cell.seed: outcome for outcome in TASK.measure([digits(seed=seed) for seed in range(3)])}
    assert repr(outcomes[1].error) == "SystemExit(7)"
    assert outcomes[0].error is outcomes[2].error is None


def test_networks_that_cannot_be_stacked_train_by_themselves(digits: MakeCell) -> None:
    """The registry says that images run under vmap; batch statistics do not."""
    outcomes = list(
        TASK.measure(
            [digits("pre-norm", "conv", family_options={"norm_kind": "batch"}, seed=seed, steps=2) for seed in range(2)]
        )
    )
    assert [count(outcome) for outcome in outcomes] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "bilstm"}, "vmap"),
        ({"family": "conv"}, "images"),
        ({"width": 256, "batch_size": 100}, "large"),
        ({}, ""),  # the only cell of its population
    ],
)
def test_rows_say_why_a_network_was_trained_by_itself(digits: MakeCell, changes: dict[str, Any], message: str) -> None:
    assert (TASK.group(digits(seed=0, **changes)) != TASK.group(digits(seed=1, **changes))) == bool(message)
    (outcome,) = TASK.measure([digits(steps=1, **changes)])
    (row,) = (one for one in outcome.measurements if one.metric == "together")
    assert row.value == 1.0
    assert message in (row.message or "")


REFUSED = """
from torch import nn
class Layer(nn.Linear):
    def forward(self, x):
        return super().forward(x) if float(x.detach().sum()) > -1e30 else x
def make_layer(width):
    return Layer(width, width)
"""


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_what_vmap_refuses_trains_as_it_would_alone(
    digits: MakeCell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str
) -> None:
    """A user's layer that reads a number, in a group of two."""
    (tmp_path / f"refused_by_vmap_{optimiser}.py").write_text(REFUSED, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    cells = [
        digits("residual", f"refused_by_vmap_{optimiser}:make_layer", seed=seed, optimiser=optimiser, rate=rate)
        for seed, rate in enumerate((0.01, 0.003))
    ]
    outcomes = list(TASK.measure(cells))
    assert len(outcomes) == 2
    for outcome in outcomes:
        (alone,) = TASK.measure([outcome.cell])
        assert count(outcome) == 1.0
        (reason,) = (one for one in outcome.measurements if one.metric == "together")
        assert reason.message is not None
        assert reason.message.startswith("trained by itself: RuntimeError")
        assert values(outcome) == values(alone)


def test_how_many_networks_are_in_memory(digits: MakeCell) -> None:
    assert populations.networks_in_memory(digits()) == 8
    assert populations.networks_in_memory(digits(together=100)) == populations.MEMBERS_ON_CPU
    assert populations.networks_in_memory(digits(together=100, device="cuda")) == 100
    assert (
        populations.networks_in_memory(digits(together=1)) == populations.networks_in_memory(digits(family="conv")) == 1
    )
    assert tasks.get("gates").cost(digits().but(task="gates")).bytes == 8 * TASK.cost(digits(together=1)).bytes


@pytest.mark.parametrize("number", [0, 2.5])
def test_a_number_that_is_none(digits: MakeCell, number: Any) -> None:
    with pytest.raises(BadInput, match="together"):
        TASK.group(digits(together=number))


SEARCH = {"search": {"space": "figure-1", "trials": 6, "seed": 0}}


@pytest.fixture
def searched(cell: MakeCell) -> Callable[..., Cell]:
    def make(block: str = "highway", family: str = "dense", **changes: Any) -> Cell:
        return cell(
            "trainability",
            block,
            family,
            dataset="digits",
            batch_size=50,
            recipe={"optimiser": "sgd", "steps": 20, "together": 6, **SEARCH, **changes.pop("recipe", {})},
            **changes,
        )

    return make


def test_every_arm_gets_the_same_trials(searched: MakeCell) -> None:
    plain, highway = (TASK.needs(searched(block, seed=3)) for block in ("plain", "highway"))
    assert [(trial.trial, trial.seed) for trial in highway] == [(trial, 1000 + trial) for trial in range(6)]
    assert [
        trial.but(block="highway", block_options=other.block_options)
        for trial, other in zip(plain, highway, strict=True)
    ] == list(highway)
    assert all(trial.block_options == {} for trial in plain)
    assert len({trial.block_options["gate_bias"] for trial in highway}) == 6
    assert TASK.needs(searched(seed=0)) == highway  # the seeds share one search
    assert all(TASK.needs(trial) == () for trial in highway)
    assert len({TASK.group(trial) for trial in highway}) == 2  # one of each activation


def test_the_best_trials_hyper_parameters_win(searched: MakeCell) -> None:
    one = searched(seed=4)
    trials = TASK.needs(one)

    def winner(*losses: float | None) -> Cell:
        results = {trial: {"final_loss": loss, "success": 0.0} for trial, loss in zip(trials, losses, strict=True)}
        return TASK.resolve(one, results)

    assert winner(None, 0.4, 0.3, 0.2, 0.5, None) == trials[3].but(trial=None, seed=4)
    slowest = min(trials, key=lambda trial: trial.recipe["rate"])
    assert winner(*[None] * 6) == slowest.but(trial=None, seed=4)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"search": {"space": "figure-2", "trials": 6}}, "figure-2"),
        ({"search": "figure-1"}, "search"),
        ({"search": {"space": "figure-1", "trials": 0}}, "trials"),
        ({"rate": "tuned", "rates": [0.1]}, "both"),
    ],
)
def test_invalid_searches(searched: MakeCell, recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        TASK.needs(searched(recipe=recipe))


@pytest.mark.parametrize("fits", [1, 3])
def test_a_population_that_lacks_memory_is_halved(
    digits: MakeCell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fits: int
) -> None:
    """Only ``fits`` networks fit into the memory at a time."""
    tried: list[int] = []
    run = trainability.Population

    def population(members: list[Any]) -> Any:
        tried.append(len(members))
        if len(members) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(members)

    cells = [digits(seed=seed, steps=5) for seed in range(5)]
    whole = [values(outcome) for outcome in TASK.measure(cells)]
    monkeypatch.setattr(trainability, "Population", population)
    checkpoints = CheckpointFolder(tmp_path, {cell: str(cell.seed) for cell in cells})
    outcomes = list(TASK.measure(cells, checkpoints))
    assert [outcome.cell for outcome in outcomes] == cells
    assert [values(outcome) for outcome in outcomes] == whole
    assert tried == {1: [5, 3, 2, 2], 3: [5, 3, 2]}[fits]
    assert list(tmp_path.iterdir()) == []


def test_a_single_network_that_lacks_memory_fails(digits: MakeCell, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(trainability, "train", full)
    with pytest.raises(torch.OutOfMemoryError):
        list(TASK.measure([digits()]))


def test_float16_is_not_trained(digits: MakeCell) -> None:
    """Without a scaled loss, small gradients would be 0, and the verdict would be about that."""
    (outcome,) = TASK.measure([digits(dtype="float16")])
    assert isinstance(outcome.error, Skip)
