"""Studies: a run's searches as optuna keeps them, in a folder beside the store, for optuna's own tools to read.

What is run and resumed hangs on the store alone; the studies are a mirror of it. They are opened and told by the one
process that may write the store.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from highway_bench.cell import Cell
from highway_bench.execution.runner import Summary
from highway_bench.results.store import Store
from highway_bench.tasks.search_trials import trial_cell
from highway_bench.tuning.space import get_space
from highway_bench.tuning.trials import Search

Studies = Mapping[Cell, Search]
"""The search of each arm, by a cell that asks for it."""


def folder_of(store: Path) -> Path:
    """Where the studies of ``store`` are kept."""
    return store.with_name(f"{store.name}.searches")


def open_studies(cells: Iterable[Cell], store: Path | None) -> Studies:
    """The studies of all arms that ``cells`` search, each with its longest search; none without a store. To be called
    while the store's lock is held.

    Raises ``BadInput`` where the folder has a search of the same arm that was made with other priors or another seed.
    """
    if store is None:
        return {}
    arms: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        if "search" in cell.recipe:
            made = arm_name(cell), cell.recipe["search"]["space"], cell.recipe["search"].get("seed", 0)
            arms[made] = max(arms.get(made, cell), cell, key=lambda one: one.recipe["search"]["trials"])
    return {
        cell: Search(
            *get_space(cell.recipe["search"]["space"]),
            seed=cell.recipe["search"].get("seed", 0),
            name=arm_name(cell),
            folder=folder_of(store),
        )
        for cell in arms.values()
    }


def arm_name(cell: Cell) -> str:
    """An arm's name in a folder: block and depth for people, and a digest of all else but the search and the seed."""
    rest = {name: value for name, value in cell.recipe.items() if name != "search"}
    digest = hashlib.sha256(cell.but(seed=0, recipe=rest).key.encode()).hexdigest()[:8]
    return f"{cell.block} in {cell.family}, depth {cell.depth}, {digest}"


def tell(studies: Studies, store: Store, summary: Summary) -> None:
    """Make every study say what ``store`` has of its trials now; a trial that has not ended is left open.

    An edit of the source may have given a trial another loss: a study that says anything else is made anew.
    """
    for cell, study in studies.items():
        trials = study.ask(cell.recipe["search"]["trials"])
        found = {
            trial.number: store.scalars(digest)
            for trial in trials
            if (digest := summary.digests.get(trial_cell(cell, trial))) is not None
        }
        losses = {
            number: ended.get("final_loss") for number, ended in found.items() if ended.get("success") is not None
        }
        if study.told() != {number: math.inf if loss is None else loss for number, loss in losses.items()}:
            study.renew()
            study.ask(len(trials))
            for number, loss in losses.items():
                study.tell(number, loss)
