"""The trials of a cell's search: as cells, and as a study with their losses.

``"search": {"space": "figure-1", "trials": 20, "seed": 0}`` draws that many trials from the space. ``"rate": "tuned"``
with ``"rates"`` tries each of those rates. Every block gets the same trials: trial i has the same rate, momentum,
decay, activation and seed in each arm. The bias of a gated block is drawn from a random stream of its own, and adds no
trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from highway_bench.cell import Cell
from highway_bench.data.base import check_count
from highway_bench.errors import BadInput
from highway_bench.families import families, make_family
from highway_bench.tasks.base import value_of
from highway_bench.tasks.from_cell import cell_spec
from highway_bench.training.recipe import Recipe
from highway_bench.tuning import draw_trials, get_space, grid_trials, new_study

SEARCH_SEED = 1_000  # the seeds of trials start here, so that a winner is run again on other seeds
WORDS = ("space", "trials", "seed")


def trials_of(cell: Cell) -> tuple[FrozenTrial, ...]:
    """The trials of ``cell``'s recipe: random ones of a search, or one for each rate; none where nothing is tuned.

    Raises ``BadInput`` for an invalid search.
    """
    if "search" in cell.recipe:
        search = cell.recipe["search"]
        if not isinstance(search, dict) or set(search) - set(WORDS) or "space" not in search or "trials" not in search:
            raise BadInput(f"a recipe's search has a space, a number of trials and a seed, not {search!r}")
        if cell.recipe.get("rate") == "tuned":
            raise BadInput("a recipe has a search or a rate to be tuned, not both")
        check_count("a search's trials", search["trials"], least=1)
        check_count("a search's seed", search.get("seed", 0), least=0)
        get_space(search["space"])
        return _random_trials(search["space"], search["trials"], search.get("seed", 0), searchable_names(cell))
    if cell.recipe.get("rate") != "tuned":
        return ()
    if not cell.recipe.get("rates"):
        raise BadInput("a recipe with rate 'tuned' needs a list of rates to try")
    return _trials_of_rates(*value_of(cell, "rates", ()))


def trial_cell(cell: Cell, trial: FrozenTrial) -> Cell:
    """The cell of one trial of ``cell``. Trials of a grid share one seed; trials of a random search have one each."""
    one = with_trial(cell, trial).but(trial=trial.number, seed=SEARCH_SEED)
    if "search" in cell.recipe:
        return one.but(seed=SEARCH_SEED + trial.number)
    return one.but(recipe={name: value for name, value in one.recipe.items() if name != "rates"})


def trial_cells(cell: Cell) -> tuple[Cell, ...]:
    """The cells of all trials of ``cell``, the same at every seed."""
    if cell.recipe.get("rate") == "tuned":
        return _cells_of_rates(cell.but(seed=0))
    return tuple(trial_cell(cell, trial) for trial in trials_of(cell))


@lru_cache(maxsize=1024)  # every seed asks
def _cells_of_rates(cell: Cell) -> tuple[Cell, ...]:
    return tuple(trial_cell(cell, trial) for trial in trials_of(cell))


def with_trial(cell: Cell, trial: FrozenTrial) -> Cell:
    """``cell`` with a trial's hyper-parameters instead of its search."""
    values = dict(trial.params)
    recipe = {name: value for name, value in cell.recipe.items() if name != "search"}
    family_options, block_options = dict(cell.family_options), dict(cell.block_options)
    if "activation" in values:
        activation = values.pop("activation")
        family_options = make_family(cell.family, **{**family_options, "activation": activation}).options
    if "gate_bias" in values:
        block_options["gate_bias"] = values.pop("gate_bias")
    return cell.but(recipe={**recipe, **values}, family_options=family_options, block_options=block_options)


def searchable_names(cell: Cell) -> frozenset[str]:
    """The hyper-parameters that ``cell`` can take from a space: words of a recipe, ``activation`` if its family has the
    option, and ``gate_bias`` if its block has it."""
    spec, names = cell_spec(cell), set(Recipe.__dataclass_fields__)
    if cell.family in families and "activation" in families.get(cell.family).options:
        names.add("activation")
    if spec.gates and "gate_bias" in spec.option_names:
        names.add("gate_bias")
    return frozenset(names)


def study_of(
    cell: Cell,
    results: Mapping[Cell, Mapping[str, float | None]],
    losses: Mapping[Cell, Mapping[int, float]] | None = None,
) -> Study:
    """The study of ``cell``'s trials, in memory.

    A trial's value is the final loss in its cell's ``results``; its ``losses`` by step are the intermediate values. The
    state is FAIL for a trial that diverged, and RUNNING for one without results or without a verdict.
    """
    study = new_study()
    for trial, one in zip(trials_of(cell), trial_cells(cell), strict=True):
        loss, success = (results.get(one, {}).get(metric) for metric in ("final_loss", "success"))
        ended = TrialState.FAIL if loss is None else TrialState.COMPLETE
        study.add_trial(
            create_trial(
                state=TrialState.RUNNING if success is None else ended,
                value=loss,
                params=trial.params,
                distributions=trial.distributions,
                intermediate_values=dict((losses or {}).get(one, {})),
            )
        )
    return study


@cache
def _random_trials(space: str, trials: int, seed: int, names: frozenset[str]) -> tuple[FrozenTrial, ...]:
    return tuple(draw_trials(get_space(space), trials, seed, names))


@lru_cache(typed=True)  # a rate of 1 and one of 1.0 are stored as different cells
def _trials_of_rates(*rates: float) -> tuple[FrozenTrial, ...]:
    return tuple(grid_trials("rate", rates))
