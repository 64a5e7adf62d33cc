"""Studies: the searches of a run as optuna's studies, in a file next to the store.

A study has the trials of one arm, their distributions, final losses and losses by step, so that optuna's own tools can
read it or go on from it. It is made from the store's rows after each run, and the file is replaced as a whole: a run
that is killed resumes from the store and loses nothing. Only the process that holds the store's lock writes it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.results.store import Store
from highway_bench.tasks.training_cells import study_of, trial_cells, trials_of
from highway_bench.tuning import new_study
from highway_bench.writing import writing


def path_of(store: Path) -> Path:
    """The file that has the studies of ``store``: a journal of optuna's."""
    return store.with_name(f"{store.name}.searches") / "studies.journal"


def arm_name(cell: Cell) -> str:
    """A study's name: block and depth for people, and a digest of all else but the search and the seed."""
    rest = {name: value for name, value in cell.recipe.items() if name != "search"}
    digest = hashlib.sha256(cell.but(seed=0, recipe=rest).key.encode()).hexdigest()[:8]
    return f"{cell.block} in {cell.family}, depth {cell.depth}, {digest}"


def check_studies(cells: Iterable[Cell], store: Path) -> None:
    """Raise ``BadInput`` where two of ``cells``, or one of them and a saved study, have other trials for the same arm,
    and where the studies of ``store`` cannot be read or written."""
    path, searched = path_of(store), [cell for cell in cells if "search" in cell.recipe]
    known = {name: study.trials for name, study in saved_studies(path).items()}
    for cell in searched:
        name, trials = arm_name(cell), trials_of(cell)
        for one, other in zip(trials, known.setdefault(name, list(trials)), strict=False):
            if (one.params, one.distributions) != (other.params, other.distributions):
                raise BadInput(f"search {name!r} was made with other priors or another seed: name another store")
    if searched:
        with writing(path.parent):
            path.parent.mkdir(exist_ok=True)
            TemporaryDirectory(dir=path.parent).cleanup()


def save_studies(cells: Iterable[Cell], store: Store, digests: Mapping[Cell, str]) -> None:
    """Save the study of every arm that ``cells`` search, from the rows in ``store``: ``digests`` are those of the run's
    cells. Other arms' studies, and the further trials of a longer search, are saved as they were."""
    path = path_of(store.path)
    saved = saved_studies(path)
    studies = dict(saved)
    for name, cell in searched_arms(cells).items():
        studies[name] = stored_study(cell, store, digests)
        if name in saved:
            studies[name].add_trials(saved[name].get_trials()[len(trials_of(cell)) :])
    if studies.keys() == saved.keys() and all(content(studies[name]) == content(saved[name]) for name in saved):
        return
    with TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder, path.name)
        storage = JournalStorage(JournalFileBackend(str(fresh)))
        for name, study in studies.items():
            new_study(study_name=name, storage=storage).add_trials(study.get_trials())
        os.replace(fresh, path)


def stored_study(cell: Cell, store: Store, digests: Mapping[Cell, str]) -> Study:
    """The study of ``cell``'s trials from the rows that ``store`` has."""
    trials = trial_cells(cell)
    measured = {digests[trial]: trial for trial in trials if trial in digests}
    losses: dict[Cell, dict[int, float]] = {trial: {} for trial in trials}
    for row in store.rows(digest=list(measured), metric="loss", axis="step"):
        if row["value"] is not None:
            losses[measured[row["digest"]]][int(row["index"])] = row["value"]
    return study_of(cell, {trial: store.scalars(digest) for digest, trial in measured.items()}, losses)


def content(study: Study) -> list[tuple[Any, ...]]:
    """What is saved of each trial: its values, their distributions, and their results."""
    return [
        (trial.params, trial.distributions, trial.state, trial.value, trial.intermediate_values)
        for trial in study.get_trials(deepcopy=False)
    ]


def searched_arms(cells: Iterable[Cell]) -> dict[str, Cell]:
    """The arms that ``cells`` search, by name, each by a cell of its longest search."""
    arms: dict[str, Cell] = {}
    for cell in cells:
        if "search" in cell.recipe:
            arms[arm_name(cell)] = max(arms.get(arm_name(cell), cell), cell, key=lambda one: len(trials_of(one)))
    return arms


def saved_studies(path: Path) -> dict[str, Study]:
    """The studies in the file ``path`` by name; none where there is no file. Raises ``BadInput`` for another file."""
    if not path.exists():
        return {}
    try:
        storage = JournalStorage(JournalFileBackend(str(path)))
        names = optuna.get_all_study_names(storage)
        return {name: optuna.load_study(study_name=name, storage=storage) for name in names}
    except (ValueError, KeyError, OSError) as error:
        raise BadInput(f"{path} is no journal of optuna's studies: {error}") from error
