"""Cells of trainings that belong together: the trials of a search, the ladder of depths, and populations.

``"search": {"space": "figure-1", "trials": 20, "seed": 0}`` draws that many trials from the space. ``"rate": "tuned"``
with ``"rates"`` tries each of those rates. Every block gets the same trials: trial i has the same rate, momentum,
decay, activation and seed in each arm. The bias of a gated block is drawn from a random stream of its own, and adds no
trials.

A depth of a ladder is tried only if the next shallower one trained with at least one seed. A frontier needs every block
at every depth up to where it stops training, and no deeper. A thousand layers of a block that fails at fifty cost an
hour and show nothing. Cells whose recipe has a ``ladder`` wait for the rung below them.

A population stacks the parameters of several networks of one shape and trains them with ``torch.func.vmap``; each
network is a member, with its own hyper-parameters and seed. It gives the same results as training one by one, and it is
used only where it was measured to be faster:

- On a CPU core, one network must be too small to keep the core busy. Those are vector families of moderate width: 1.2
  to 1.5 times as many trials a minute at 50 layers of 50 units (docs/results/tool.md), no gain at 256. Convolutions,
  attention and recurrent layers gain nothing.
- On a GPU, everything that ``vmap`` can run gains. A population that lacks memory there is halved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState, create_trial

from highway_bench.cell import Cell
from highway_bench.data.base import check_count
from highway_bench.errors import BadInput
from highway_bench.families import families, make_family
from highway_bench.tasks.base import Skip, value_of
from highway_bench.tasks.from_cell import cell_family, cell_spec
from highway_bench.training.checkpoint import CheckpointFolder
from highway_bench.training.recipe import Recipe
from highway_bench.tuning import draw_trials, get_space, grid_trials, new_study
from highway_bench.words import POSITIVE, listed, mapping, whole

SEARCH_SEED = 1_000  # the seeds of trials start here, so that a winner is run again on other seeds
WORDS = ("space", "trials", "seed")
DEPTHS, SEEDS, RATES = listed(whole(1)), listed(whole(0)), listed(POSITIVE)
MEMBERS_ON_CPU = 16  # of one population on a CPU core: with more, a layer's activations leave the cache
BUSY_LAYER_FLOPS = 1e7  # of a layer's forward pass on a batch: above it, one network keeps a CPU core busy
MEMBER_WORDS = ("rate", "momentum", "decay", "weight_decay")  # recipe words whose values may differ between members


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


def study_of(cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> Study:
    """The study of ``cell``'s trials, in memory.

    A trial's value is the final loss in its cell's ``results``. The state is FAIL for a trial that diverged, and
    RUNNING for one without results or without a verdict.
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
            )
        )
    return study


@cache
def _random_trials(space: str, trials: int, seed: int, names: frozenset[str]) -> tuple[FrozenTrial, ...]:
    return tuple(draw_trials(get_space(space), trials, seed, names))


@lru_cache(typed=True)  # a rate of 1 and one of 1.0 are stored as different cells
def _trials_of_rates(*rates: float) -> tuple[FrozenTrial, ...]:
    return tuple(grid_trials("rate", rates))


def is_ladder(value: Mapping[str, Any]) -> bool:
    """Whether ``value`` has depths, a number of seeds or a list of them, and rates or none."""
    return (
        {"depths", "seeds"} <= set(value) <= {"depths", "seeds", "rates"}
        and DEPTHS.holds(value["depths"])
        and (whole(1).holds(value["seeds"]) or SEEDS.holds(value["seeds"]))
        and ("rates" not in value or RATES.holds(value["rates"]))
    )


LADDER = mapping("depths, seeds and, where they are tuned, rates", is_ladder).meaning(
    "The depths, seeds and rates of a ladder; a depth waits for the next shallower one to train."
)


def rung_below(cell: Cell) -> tuple[Cell, ...]:
    """The cells of the next shallower depth of ``cell``'s ladder, one a seed; none on the lowest rung.

    A ladder is ``{"depths": […], "seeds": n or […], "rates": […]}``. Every rung is tuned over the rates. Without rates,
    all rungs have the cell's own rate.
    """
    ladder: Mapping[str, Any] = value_of(cell, "ladder", {})
    shallower = [depth for depth in ladder.get("depths", ()) if depth < cell.depth]
    if not shallower:
        return ()
    tuned = {"rate": "tuned", "rates": ladder["rates"]} if "rates" in ladder else {}
    seeds = range(ladder["seeds"]) if isinstance(ladder["seeds"], int) else ladder["seeds"]
    return _at_seeds(cell.but(depth=max(shallower), recipe={**cell.recipe, **tuned}, trial=None, seed=0), *seeds)


@lru_cache(maxsize=1024)  # every seed and every trial of the rung above asks
def _at_seeds(cell: Cell, *seeds: int) -> tuple[Cell, ...]:
    return tuple(cell.but(seed=seed) for seed in seeds)


def check_rung(cell: Cell, results: Mapping[Cell, Mapping[str, float | None]]) -> None:
    """Check that the rung below ``cell`` trained with at least one seed, by the scalar metrics in ``results``.

    Raises ``Skip`` where it trained with none or was skipped itself, and ``BadInput`` where no finished seed trained
    and some seeds did not finish.
    """
    below = rung_below(cell)
    if below and not any(results.get(one, {}).get("success") for one in below):
        if any(one not in results for one in below):
            raise BadInput(f"depth {below[0].depth} did not finish, so whether {cell.block} trains there is not known")
        raise Skip(f"{cell.block} trained at no seed of depth {below[0].depth}, so no deeper was tried")


def population_limit(cell: Cell) -> int:
    """How many runs may train as one population: ``together`` in the cell's recipe, 1 by default.

    Raises ``BadInput`` for a value that is no whole number of at least 1.
    """
    return int(value_of(cell, "together", 1))


def check_population(cell: Cell) -> None:
    """Raise ``BadInput`` where the cell's recipe asks for a population of a family that trains alone."""
    if population_limit(cell) > 1 and cell_family(cell).trains_alone:
        raise BadInput(
            f"family {cell.family!r} has batch norms, whose running statistics no population keeps apart: leave "
            f"together out of the recipe"
        )


def reason_to_train_alone(cell: Cell) -> str | None:
    """Why runs of this cell's shape do not train as the population that its recipe asks for (``together`` above 1).

    ``None`` where they do, and where the recipe asks for none.
    """
    if population_limit(cell) == 1:
        return None
    if cell.recipe.get("loss") is not None:
        return "its loss is the user's own"
    family, spec = cell_family(cell), cell_spec(cell)
    if not (family.vmap and spec.vmap):
        return "declared as not running under vmap"
    if cell.device == "cpu" and family.kind != "vector":
        return f"{family.kind}s are no faster together on a CPU"
    if cell.device == "cpu" and spec.layer_flops(family, cell.width, positions=1) * cell.batch_size > BUSY_LAYER_FLOPS:
        return "layers as large as these are no faster together on a CPU"
    return None


def networks_in_memory(cell: Cell) -> int:
    """How many networks a worker that measures ``cell`` holds in memory at the same time, at most."""
    if reason_to_train_alone(cell) is not None:
        return 1
    limit = population_limit(cell)
    return limit if cell.device != "cpu" else min(limit, MEMBERS_ON_CPU)


def shared_shape(cell: Cell) -> Cell:
    """``cell`` without the values that may differ between members (hyper-parameters, gate bias, seed, trial).

    Two cells may train in one population where this is equal for both.
    """
    recipe = {name: value for name, value in cell.recipe.items() if name not in MEMBER_WORDS}
    options = {name: value for name, value in cell.block_options.items() if name != "gate_bias"}
    return cell.but(recipe=recipe, block_options=options, seed=0, trial=None)


def populations_of(cells: Sequence[Cell], checkpoints: CheckpointFolder | None) -> Iterator[list[Cell]]:
    """``cells`` of one group, split into populations of nearly equal size: at most ``MEMBERS_ON_CPU`` on a CPU, all of
    them on a GPU. Cells whose population was interrupted stay together, because they share a checkpoint."""
    for part in checkpoints.by_file(cells) if checkpoints is not None else [list(cells)]:
        most = len(part) if part[0].device != "cpu" else MEMBERS_ON_CPU
        size = math.ceil(len(part) / math.ceil(len(part) / most))
        yield from (part[start : start + size] for start in range(0, len(part), size))
