"""Tuning: search spaces of optuna's distributions, random trials that are the same in every arm, and their studies.

The space ``figure-1`` is this project's choice, because the paper gives no ranges. Rate and momentum cover the winners
of a search by hand, ``decay`` is the ratio of the last learning rate to the first, and the bias of a gate starts
between −10 and −1 (arXiv:1505.00387, Figure 1).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from highway_bench.errors import UnknownName

Priors = Mapping[str, BaseDistribution]


class Space(NamedTuple):
    """The priors of a search: ``shared`` for every block, and ``gates`` for blocks with gates.

    Each part is drawn in order from a random stream of its own, so the prior of gates does not change the shared
    values.
    """

    shared: Priors
    gates: Priors

    @property
    def priors(self) -> dict[str, BaseDistribution]:
        return {**self.shared, **self.gates}


FIGURE_1 = Space(
    shared={
        "rate": FloatDistribution(1e-3, 1.0, log=True),
        "momentum": FloatDistribution(0.5, 0.99),
        "decay": FloatDistribution(1e-3, 1.0, log=True),
        "activation": CategoricalDistribution(("relu", "tanh")),
    },
    gates={"gate_bias": FloatDistribution(-10.0, -1.0)},
)
SPACES: Mapping[str, Space] = {"figure-1": FIGURE_1}


def get_space(name: str) -> Space:
    """The space called ``name``; raises ``UnknownName`` with near names."""
    try:
        return SPACES[name]
    except (KeyError, TypeError):
        raise UnknownName("search space", str(name), SPACES) from None


class PairedSampler(BaseSampler):
    """A random sampler whose trial i is the same in every study of one space and seed.

    optuna's ``RandomSampler`` draws each part of the space. It is seeded by (seed, part, trial number), so the values
    of a trial do not depend on the number of trials, on a resume, or on which hyper-parameters a study uses. Published
    rows depend on these values, so the order of priors in a part must not change.
    """

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._seed = seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._space.priors

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        values = {}
        for part, priors in enumerate(self._space):
            (state,) = np.random.SeedSequence([self._seed, part, trial.number]).generate_state(1)
            sampler = RandomSampler(seed=int(state))
            for name, prior in priors.items():
                values[name] = sampler.sample_independent(study, trial, name, prior)
        return values

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        raise ValueError(f"the search space has no {param_name}")


def draw_trials(space: Space, count: int, seed: int, names: Collection[str]) -> list[FrozenTrial]:
    """The first ``count`` trials of ``space`` under ``seed``, with values for ``names`` only."""
    study = new_study(sampler=PairedSampler(space, seed))
    for _ in range(count):
        study.ask({name: prior for name, prior in space.priors.items() if name in names})
    return study.get_trials()


def grid_trials(name: str, values: Collection[Any]) -> list[FrozenTrial]:
    """One trial for each value of the hyper-parameter ``name``, in the order of ``values``."""
    study = new_study()
    prior: dict[str, BaseDistribution] = {name: CategoricalDistribution(tuple(values))}
    study.add_trials(
        create_trial(state=TrialState.RUNNING, params={name: value}, distributions=prior) for value in values
    )
    return study.get_trials()


def winner(study: Study) -> FrozenTrial:
    """The trial of lowest loss. Among equal losses, and where every trial failed, it is the one of smallest rate."""
    return min(
        study.get_trials(),
        key=lambda trial: (math.inf if trial.value is None else trial.value, trial.params["rate"], trial.number),
    )


def new_study(**options: Any) -> Study:
    """``optuna.create_study`` without its message in the log."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(**options)
    finally:
        optuna.logging.set_verbosity(verbosity)
