"""The search that a cell's recipe asks for: its trials as cells, and a trial's hyper-parameters put into a cell.

``"search": {"space": "figure-1", "trials": 20, "seed": 0}`` draws that many trials from the space. Every block gets the
same ones: trial i has the same rate, momentum, decay and activation, and the same seed, in each arm; a gated block's
bias comes from a stream of its own and gets no trial more.
"""

from __future__ import annotations

from functools import cache

from highway_bench.cell import Cell
from highway_bench.data.base import check_count
from highway_bench.errors import BadInput
from highway_bench.families import families, make_family
from highway_bench.tasks.from_cell import cell_spec
from highway_bench.training.recipe import Recipe
from highway_bench.tuning.space import get_space
from highway_bench.tuning.trials import Search, Trial

SEARCH_SEED = 1_000  # trials train on seeds of their own, so that a winner meets fresh ones
WORDS = ("space", "trials", "seed")


def trials_of(cell: Cell) -> tuple[Trial, ...]:
    """The trials that ``cell``'s recipe asks for. Raises ``BadInput`` for a search that cannot be."""
    search = cell.recipe["search"]
    if not isinstance(search, dict) or set(search) - set(WORDS) or "space" not in search or "trials" not in search:
        raise BadInput(f"a recipe's search has a space, a number of trials and a seed, not {search!r}")
    if cell.recipe.get("rate") == "tuned":
        raise BadInput("a recipe has a search or a rate to be tuned, not both")
    check_count("a search's trials", search["trials"], least=1)
    check_count("a search's seed", search.get("seed", 0), least=0)
    return _drawn(search["space"], search["trials"], search.get("seed", 0))


def trial_cell(cell: Cell, trial: Trial) -> Cell:
    """The cell of one trial of ``cell``'s search."""
    return with_trial(cell, trial).but(trial=trial.number, seed=SEARCH_SEED + trial.number)


def with_trial(cell: Cell, trial: Trial) -> Cell:
    """``cell`` with a trial's hyper-parameters in the place of its search.

    An activation goes to a family that can choose it, a gate's bias to a block that has gates.
    """
    values = dict(trial.values)
    recipe = {name: value for name, value in cell.recipe.items() if name != "search"}
    recipe |= {name: values.pop(name) for name in trial.values if name in Recipe.__dataclass_fields__}
    family_options, block_options = dict(cell.family_options), dict(cell.block_options)
    activation, bias = values.pop("activation", None), values.pop("gate_bias", None)
    if activation is not None and cell.family in families and "activation" in families.get(cell.family).options:
        family_options = make_family(cell.family, **{**family_options, "activation": activation}).options
    spec = cell_spec(cell)
    if bias is not None and spec.gates and "gate_bias" in spec.option_names:
        block_options["gate_bias"] = bias
    if values:
        raise BadInput(f"nothing takes the {', '.join(values)} that the search draws")
    return cell.but(recipe=recipe, family_options=family_options, block_options=block_options)


@cache
def _drawn(space: str, trials: int, seed: int) -> tuple[Trial, ...]:
    return tuple(Search(*get_space(space), seed=seed).ask(trials))
