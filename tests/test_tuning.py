"""Tuning: the trials of a seed are the published ones, the same in every arm and after a resume."""

import math

import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from highway_bench.tuning import FIGURE_1, PairedSampler, Space, draw_trials, grid_trials, new_study, winner

ALL = FIGURE_1.priors

DRAWN = {  # (seed, number): rate, momentum, decay, activation, gate bias, as in published rows
    (0, 0): (0.04043878009515104, 0.7783027994773865, 0.003570976957629806, "tanh", -1.2409925452939863),
    (0, 1): (0.36088890394398854, 0.7560303885738537, 0.00893876700922226, "tanh", -8.510918211804297),
    (0, 19): (0.0011004864461382404, 0.9785110171757326, 0.010824110469599852, "tanh", -6.703176984715697),
    (1, 0): (0.008390055448359558, 0.7542016726955032, 0.0019752223917120005, "relu", -4.225200994959718),
    (1, 1): (0.024060333580268177, 0.7512877874457425, 0.031280143240977054, "tanh", -1.508560051995385),
}


def params(trials):
    return [trial.params for trial in trials]


@pytest.mark.parametrize(("seed", "number"), DRAWN)
def test_a_seeds_trials_are_the_published_numbers(seed, number):
    trial = draw_trials(FIGURE_1, number + 1, seed, ALL)[number]
    assert tuple(trial.params.items()) == tuple(zip(ALL, DRAWN[seed, number], strict=True))
    assert trial.distributions == ALL


def test_priors_are_covered():
    drawn = params(draw_trials(FIGURE_1, 200, 0, ALL))
    values = {name: [trial[name] for trial in drawn] for name in ALL}
    assert 70 < values["activation"].count("tanh") < 130
    assert 70 < sum(value < 10**-1.5 for value in values["rate"]) < 130  # half of the logarithms
    assert 70 < sum(value < -5.5 for value in values["gate_bias"]) < 130
    assert len(set(values["rate"])) == 200


def test_the_streams_do_not_follow_each_other():
    """The two parts would draw equal uniform numbers if they were seeded alike."""
    space = Space({"rate": FloatDistribution(0.0, 1.0)}, {"gate_bias": FloatDistribution(0.0, 1.0)})
    assert all(trial.params["rate"] != trial.params["gate_bias"] for trial in draw_trials(space, 5, 0, space.priors))


@pytest.mark.parametrize("names", [FIGURE_1.shared, ["momentum", "gate_bias"], ["activation"]])
def test_a_value_does_not_change_with_what_else_is_searched(names):
    whole = params(draw_trials(FIGURE_1, 10, 0, ALL))
    assert params(draw_trials(FIGURE_1, 10, 0, names)) == [{name: trial[name] for name in names} for trial in whole]


def test_a_study_continues_with_the_trials_of_a_longer_search():
    """Trials that another process saved, and a trial that the user adds, do not change later ones."""
    study = new_study(sampler=PairedSampler(FIGURE_1, 0))
    study.add_trials(draw_trials(FIGURE_1, 3, 0, ALL))
    study.enqueue_trial({"rate": 0.5})
    more = [study.ask(ALL).params for _ in range(2)]
    expected = params(draw_trials(FIGURE_1, 5, 0, ALL))[3:]
    assert more == [{**expected[0], "rate": 0.5}, expected[1]]
    with pytest.raises(ValueError, match="width"):
        study.ask({"width": FloatDistribution(1, 2)})


def test_a_grid_has_its_values_in_their_order():
    trials = grid_trials("rate", [0.3, 1, 0.1])
    assert [(trial.number, trial.params) for trial in trials] == [
        (0, {"rate": 0.3}),
        (1, {"rate": 1}),
        (2, {"rate": 0.1}),
    ]


@pytest.mark.parametrize(
    ("losses", "number"),
    [
        ((0.3, 0.2, 0.4), 1),
        ((None, 0.2, 0.1), 2),
        ((0.2, 0.2, 0.2), 2),
        ((None, None, None), 2),
        ((0.1, None, None), 0),
    ],
)
def test_the_winner(losses, number):
    study = new_study()
    for trial, loss in zip(grid_trials("rate", [0.3, 0.1, 0.03]), losses, strict=True):
        state = TrialState.FAIL if loss is None else TrialState.COMPLETE
        study.add_trial(create_trial(state=state, value=loss, params=trial.params, distributions=trial.distributions))
    assert winner(study).number == number
    if any(loss is not None for loss in losses):
        assert study.best_value == min(math.inf if loss is None else loss for loss in losses)
