"""Studies: what a run's searches leave for optuna, and a folder of another protocol."""

from __future__ import annotations

import math
from pathlib import Path

import optuna
import pytest
from optuna.storages.journal import JournalFileBackend

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.runner import Summary, run_cells
from highway_bench.reproduce.studies import arm_name, folder_of, open_studies, tell
from highway_bench.results.schema import row
from highway_bench.results.store import Store
from highway_bench.tasks import tasks
from highway_bench.tuning.trials import JOURNAL

optuna.logging.set_verbosity(optuna.logging.WARNING)


def searched(seed: int = 0, **search: object) -> Cell:
    recipe = {
        "optimiser": "sgd",
        "steps": 4,
        "threshold": 0.1,
        "search": {"space": "figure-1", "trials": 3, "seed": 0, **search},
    }
    return Cell(
        task="trainability",
        block="highway",
        family="dense",
        depth=2,
        width=8,
        nominal_width=8,
        batch_size=32,
        dataset="digits",
        recipe=recipe,
        seed=seed,
    )


@pytest.mark.slow
def test_optuna_can_read_what_came_of_every_trial(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    cells = [searched(seed) for seed in range(2)]
    studies = open_studies(cells, path)
    with Store(path) as store:
        summary = run_cells(cells, store, workers=1)
        tell(studies, store, summary)
        losses = store.frame(metric="final_loss", axis="")
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder_of(path) / JOURNAL)))
    study = optuna.load_study(study_name=f"{arm_name(cells[0])}, shared", storage=storage)
    trials = losses[losses["trial"].notna()].sort_values("trial")
    assert [trial.value for trial in study.trials] == pytest.approx(list(trials["value"]))
    gates = optuna.load_study(study_name=f"{arm_name(cells[0])}, gates", storage=storage)
    assert [set(trial.params) for trial in gates.trials] == [{"gate_bias"}] * 3


def test_seeds_of_an_arm_share_a_study_and_other_budgets_do_not() -> None:
    longer = searched().but(recipe={**searched().recipe, "steps": 5})
    assert arm_name(searched(0)) == arm_name(searched(1))
    assert arm_name(searched()) != arm_name(longer)
    assert arm_name(searched()) == arm_name(searched(trials=30))


def test_a_folder_of_another_protocol_is_refused(tmp_path: Path) -> None:
    open_studies([searched()], tmp_path / "store.sqlite")
    open_studies([searched(trials=9)], tmp_path / "store.sqlite")
    with pytest.raises(BadInput, match=r"made with other priors or another seed.*name another store"):
        open_studies(
            [searched().but(recipe={**searched().recipe, "search": {"space": "figure-1", "trials": 3, "seed": 7}})],
            tmp_path / "store.sqlite",
        )


def test_studies_say_what_the_store_has_now(tmp_path: Path) -> None:
    """A trial that diverged trains after an edit, and one that had ended is to be measured again."""
    path, cell = tmp_path / "store.sqlite", searched()
    trials = tasks.get("trainability").needs(cell)

    def told(losses: dict[int, float | None]) -> dict[int, float]:
        digests = {trial: f"digest {trial.trial}" for trial in trials}
        with Store(path) as store:
            for trial in trials:
                known = trial.trial in losses
                values = {"success": 1.0 if known else None, "final_loss": losses.get(trial.trial or 0)}
                store.put(
                    digests[trial],
                    [
                        row(digest=digests[trial], status="ok", metric=metric, value=value)
                        for metric, value in values.items()
                    ],
                )
            studies = open_studies([cell, searched(trials=2)], path)
            tell(studies, store, Summary("run", {}, 0, 0, 0.0, digests))
        (study,) = open_studies([cell], path).values()
        return study.told()

    assert told({0: 0.5, 1: None, 2: 0.3}) == {0: 0.5, 1: math.inf, 2: 0.3}
    assert told({0: 0.5, 1: 0.4}) == {0: 0.5, 1: 0.4}
    assert told({0: 0.5, 1: 0.4}) == {0: 0.5, 1: 0.4}


def test_without_a_store_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_studies([searched()], None) == {}
    assert list(tmp_path.iterdir()) == []
