"""Studies: what a run's searches leave for optuna, and a file of another protocol."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import optuna
import pytest
from optuna.pruners import MedianPruner, SuccessiveHalvingPruner
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study
from optuna.trial import TrialState

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.runner import run_cells
from highway_bench.reproduce.studies import arm_name, check_studies, path_of, save_studies, saved_studies
from highway_bench.results.schema import row
from highway_bench.results.store import Store
from highway_bench.tasks import tasks
from highway_bench.tuning import FIGURE_1, PairedSampler, draw_trials

optuna.logging.set_verbosity(optuna.logging.WARNING)


def searched(cell_seed: int = 0, block: str = "highway", **search: object) -> Cell:
    recipe = {
        "optimiser": "sgd",
        "steps": 4,
        "threshold": 0.1,
        "search": {"space": "figure-1", "trials": 3, "seed": 0, **search},
    }
    return Cell(
        task="trainability",
        block=block,
        family="dense",
        depth=2,
        width=8,
        nominal_width=8,
        batch_size=32,
        dataset="digits",
        recipe=recipe,
        seed=cell_seed,
    )


def save(path: Path, losses: Mapping[int, float | None], *cells: Cell) -> None:
    """Save the studies of a run that measured the trials in ``losses``; step 1 had twice the final loss."""
    cells = cells or (searched(),)
    trials = {trial: f"digest {trial.trial}" for cell in cells for trial in tasks.get("trainability").needs(cell)}
    with Store(path) as store:
        for trial, digest in trials.items():
            number = trial.trial or 0
            loss = losses.get(number)
            rows = [
                row(digest=digest, status="ok", metric="success", value=1.0 if number in losses else None),
                row(digest=digest, status="ok", metric="final_loss", value=loss),
            ]
            rows += [
                row(digest=digest, status="ok", metric="loss", axis="step", value=loss and loss * times)
                | {"index": step}
                for step, times in ((1, 2.0), (4, 1.0))
            ]
            store.put(digest, rows)
        check_studies(cells, path)
        save_studies(cells, store, trials)


def values(path: Path) -> list[tuple[TrialState, float | None]]:
    return [(trial.state, trial.value) for trial in saved_studies(path_of(path))[arm_name(searched())].trials]


def loaded(path: Path, **options: object) -> Study:
    """The arm's study as a user of optuna opens it."""
    storage = JournalStorage(JournalFileBackend(str(path_of(path))))
    return optuna.load_study(study_name=arm_name(searched()), storage=storage, **options)


@pytest.mark.slow
def test_a_run_leaves_what_came_of_every_trial(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    cells = [searched(seed, block) for seed in range(2) for block in ("highway", "plain")]
    with Store(path) as store:
        check_studies(cells, path)
        summary = run_cells(cells, store, workers=1)
        save_studies(cells, store, summary.digests)
        losses = store.frame(metric="final_loss", axis="", block="highway")
    study = loaded(path)
    trials = losses[losses["trial"].notna()].sort_values("trial")
    assert [trial.value for trial in study.trials] == pytest.approx(list(trials["value"]))
    assert all(set(trial.intermediate_values) == {1, 2, 3, 4} for trial in study.trials)
    drawn = draw_trials(FIGURE_1, 3, 0, FIGURE_1.priors)
    assert [trial.params for trial in study.trials] == [trial.params for trial in drawn]
    plain = saved_studies(path_of(path))[arm_name(searched(block="plain"))]
    assert all(trial.params.keys() == FIGURE_1.shared.keys() for trial in plain.trials)


def test_optunas_own_tools_read_a_study_and_go_on_from_it(tmp_path: Path) -> None:
    save(tmp_path / "store", {0: 0.5, 1: None, 2: 0.3})
    study = loaded(tmp_path / "store", sampler=PairedSampler(FIGURE_1, 0), pruner=MedianPruner(n_startup_trials=2))
    assert (study.best_trial.number, study.best_value) == (2, 0.3)
    frame = study.trials_dataframe()
    assert list(frame["state"]) == ["COMPLETE", "FAIL", "COMPLETE"]
    assert {f"params_{name}" for name in FIGURE_1.priors} <= set(frame)
    trial = study.ask(FIGURE_1.priors)
    assert trial.params == draw_trials(FIGURE_1, 4, 0, FIGURE_1.priors)[3].params
    trial.report(2.0, step=1)
    assert trial.should_prune()  # the saved trials were at 1.0 and 0.6 there
    study.tell(trial, state=TrialState.PRUNED)
    assert loaded(tmp_path / "store").trials[3].state == TrialState.PRUNED


def test_a_saved_study_can_be_halved(tmp_path: Path) -> None:
    save(tmp_path / "store", {0: 0.5, 1: None, 2: 0.3})
    pruner = SuccessiveHalvingPruner(min_resource=1, reduction_factor=2)
    study = loaded(tmp_path / "store", sampler=PairedSampler(FIGURE_1, 0), pruner=pruner)
    good, bad = (study.ask(FIGURE_1.priors) for _ in range(2))
    good.report(0.1, step=1)
    assert not good.should_prune()
    bad.report(0.9, step=1)
    assert bad.should_prune()
    study.tell(bad, state=TrialState.PRUNED)
    study.tell(good, 0.1)
    assert loaded(tmp_path / "store").best_trial.number == good.number


def test_seeds_of_an_arm_share_a_study_and_other_budgets_do_not() -> None:
    longer = searched().but(recipe={**searched().recipe, "steps": 5})
    assert arm_name(searched(0)) == arm_name(searched(1))
    assert arm_name(searched()) != arm_name(longer)
    assert arm_name(searched()) == arm_name(searched(trials=30))


def test_a_file_of_another_protocol_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "store", {0: 0.5})
    check_studies([searched(trials=9)], tmp_path / "store")
    check_studies([searched(), searched(1), searched(block="plain", seed=7)], tmp_path / "other")
    says = r"^search 'highway in dense, depth 2, .*' was made with other priors or another seed: name another store$"
    with pytest.raises(BadInput, match=says):
        check_studies([searched(seed=7)], tmp_path / "store")
    with pytest.raises(BadInput, match=says):
        check_studies([searched(), searched(1, seed=7)], tmp_path / "new")


def test_other_priors_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "store", {0: 0.5})
    trials = draw_trials(FIGURE_1, 3, 0, FIGURE_1.priors)
    for trial in trials:  # the same values, from a wider range
        trial.distributions = {**FIGURE_1.priors, "rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True)}
    monkeypatch.setattr("highway_bench.reproduce.studies.trials_of", lambda cell: trials)
    with pytest.raises(BadInput, match="was made with other priors"):
        check_studies([searched()], tmp_path / "store")


def test_studies_say_what_the_store_has_now(tmp_path: Path) -> None:
    """A trial that diverged trains after an edit, and one that had ended is to be measured again."""
    path = tmp_path / "store"
    save(path, {0: 0.5, 1: None, 2: 0.3})
    assert values(path) == [(TrialState.COMPLETE, 0.5), (TrialState.FAIL, None), (TrialState.COMPLETE, 0.3)]
    save(path, {0: 0.5, 1: 0.4})
    assert values(path) == [(TrialState.COMPLETE, 0.5), (TrialState.COMPLETE, 0.4), (TrialState.RUNNING, None)]
    written = path_of(path).stat().st_mtime_ns
    save(path, {0: 0.5, 1: 0.4})
    assert path_of(path).stat().st_mtime_ns == written


def test_a_shorter_search_and_another_arm_keep_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "store"
    save(path, {0: 0.5, 1: 0.4, 2: 0.3})
    save(path, {0: 0.6}, searched(trials=1))
    assert values(path) == [(TrialState.COMPLETE, loss) for loss in (0.6, 0.4, 0.3)]
    save(path, {0: 0.6}, searched(block="plain"))
    assert values(path) == [(TrialState.COMPLETE, loss) for loss in (0.6, 0.4, 0.3)]
    assert [item.name for item in path_of(path).parent.iterdir()] == [path_of(path).name]


def test_a_cell_without_a_search_leaves_no_folder(tmp_path: Path) -> None:
    fixed = searched().but(recipe={"optimiser": "sgd", "steps": 4})
    with Store(tmp_path / "store") as store:
        check_studies([fixed], store.path)
        save_studies([fixed], store, {})
    assert not path_of(tmp_path / "store").parent.exists()


def test_a_file_that_cannot_be(tmp_path: Path) -> None:
    path_of(tmp_path / "store").parent.touch()
    with pytest.raises(BadInput, match=r"^cannot write .*store\.searches: File exists$"):
        check_studies([searched()], tmp_path / "store")
    path_of(tmp_path / "other").parent.mkdir()
    path_of(tmp_path / "other").write_text("no journal\nat all\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"is no journal of optuna's studies"):
        check_studies([searched()], tmp_path / "other")
