"""Populations: each cell has the rows that it would have alone, whatever becomes of the others."""

import sys

import pytest
import torch

from highway_bench.errors import BadInput
from highway_bench.tasks import Skip, tasks, trainability
from highway_bench.training.checkpoint import CheckpointFolder
from tests.cells import by_place, on_digits

TASK = tasks.get("trainability")


def member(block="highway", family="dense", **changes):
    return on_digits(block, family, **{"rate": 0.05, "dtype": "float64", "together": 8, **changes})


def values(outcome):
    """What was measured, seconds aside; sums are taken in another order."""
    assert outcome.error is None
    return {
        place: value if value is None else pytest.approx(value, rel=1e-7)
        for place, value in by_place(outcome.measurements).items()
        if place[0] != "together"
    }


def together(outcome):
    """With how many networks one was trained, and why so."""
    return next((one.value, one.message or "") for one in outcome.measurements if one.metric == "together")


def test_members_have_the_rows_they_would_have_alone():
    cells = [
        member("residual", seed=seed, rate=rate, evaluate="epoch", batch_size=300)
        for seed, rate in enumerate((0.01, 1e200, 0.03))
    ]
    assert len({TASK.group(cell) for cell in cells}) == 1
    as_one = list(TASK.measure(cells))
    assert [outcome.cell for outcome in as_one] == cells
    for outcome in as_one:
        (alone,) = TASK.measure([outcome.cell])
        assert (together(outcome)[0], together(alone)[0]) == (3.0, 1.0)
        assert values(outcome) == values(alone)
        assert outcome.params == alone.params
        assert [one.status for one in outcome.measurements] == [one.status for one in alone.measurements]


def test_an_error_is_its_cells_own():
    cells = [member(seed=0), member(seed=1, batch_size=5_000), member(seed=2)]
    outcomes = {outcome.cell.seed: outcome for outcome in TASK.measure(cells)}
    assert isinstance(outcomes[1].error, BadInput)
    assert together(outcomes[0])[0] == together(outcomes[2])[0] == 2.0
    (skipped,) = TASK.measure([member(dataset="adding")])
    assert isinstance(skipped.error, Skip)


@pytest.mark.parametrize("method", ["prepare", "measurements"])
def test_a_cell_that_leaves_python_costs_no_other(monkeypatch, method):
    real = getattr(TASK, method)

    def leaving(*given):
        if given[-1].seed == 1:
            sys.exit(7)
        return real(*given)

    monkeypatch.setattr(TASK, method, leaving)
    outcomes = {outcome.cell.seed: outcome for outcome in TASK.measure([member(seed=seed) for seed in range(3)])}
    assert repr(outcomes[1].error) == "SystemExit(7)"
    assert outcomes[0].error is outcomes[2].error is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "bilstm"}, "vmap"),
        ({"family": "conv"}, "images"),
        ({"width": 256, "batch_size": 100}, "large"),
    ],
)
def test_rows_say_why_a_network_was_trained_by_itself(changes, message):
    assert TASK.group(member(seed=0, **changes)) != TASK.group(member(seed=1, **changes))
    (outcome,) = TASK.measure([member(steps=1, **changes)])
    number, reason = together(outcome)
    assert number == 1.0
    assert message in reason


def test_the_only_cell_of_its_population_has_no_reason():
    (outcome,) = TASK.measure([member(steps=1)])
    assert together(outcome) == (1.0, "")


@pytest.mark.parametrize(
    ("family", "options", "optimiser"),
    [
        ("tests.unusual_layers:reading", {}, "sgd"),
        ("tests.unusual_layers:reading", {}, "adam"),
        ("conv", {"norm_kind": "batch"}, "sgd"),  # the registry says that images run under vmap
    ],
)
def test_what_vmap_refuses_trains_as_it_would_alone(family, options, optimiser):
    words = {"family_options": options, "optimiser": optimiser, "steps": 4}
    cells = [member("pre-norm", family, seed=seed, rate=0.01, **words) for seed in range(2)]
    for outcome in TASK.measure(cells):
        (alone,) = TASK.measure([outcome.cell])
        number, reason = together(outcome)
        assert number == 1.0
        assert reason.startswith("trained by itself: ") or family == "conv"
        assert values(outcome) == values(alone)


@pytest.mark.parametrize("fits", [1, 3])
def test_a_population_that_lacks_memory_is_halved(monkeypatch, tmp_path, fits):
    """Only ``fits`` networks fit into the memory at a time."""
    tried = []
    run = trainability.Population

    def population(members):
        tried.append(len(members))
        if len(members) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return run(members)

    cells = [member(seed=seed, steps=5) for seed in range(5)]
    whole = [values(outcome) for outcome in TASK.measure(cells)]
    monkeypatch.setattr(trainability, "Population", population)
    checkpoints = CheckpointFolder(tmp_path, {cell: str(cell.seed) for cell in cells})
    outcomes = list(TASK.measure(cells, checkpoints))
    assert [outcome.cell for outcome in outcomes] == cells
    assert [values(outcome) for outcome in outcomes] == whole
    assert tried == {1: [5, 3, 2, 2], 3: [5, 3, 2]}[fits]
    assert list(tmp_path.iterdir()) == []


def test_a_single_network_that_lacks_memory_fails(monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(trainability, "train", full)
    with pytest.raises(torch.OutOfMemoryError):
        list(TASK.measure([member()]))


def test_float16_is_not_trained():
    """Without a scaled loss, small gradients would be 0, and the verdict would be about that."""
    (outcome,) = TASK.measure([member(dtype="float16")])
    assert isinstance(outcome.error, Skip)
