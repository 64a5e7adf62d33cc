"""Cells that belong together: the trials of a search, the ladder of depths, and the groups of populations."""

import pytest

from highway_bench.errors import BadInput
from highway_bench.execution.schedule import Schedule, with_needs
from highway_bench.results.schema import Status, row
from highway_bench.results.store import Store
from highway_bench.tasks import Skip, tasks
from highway_bench.tasks import training_cells as populations
from highway_bench.tasks.training_cells import SEARCH_SEED, rung_below
from highway_bench.training.checkpoint import CheckpointFolder
from tests.cells import on_digits

TASK = tasks.get("trainability")

# -------------------------------------------------------------------------------------------------------------- trials

TUNED = {"rate": "tuned", "rates": [0.3, 0.1, 0.03]}
SEARCHED = {"search": {"space": "figure-1", "trials": 6, "seed": 0}, "together": 6}
SEARCHES = pytest.mark.parametrize("search", [TUNED, SEARCHED])


@SEARCHES
def test_every_seed_and_every_block_gets_the_same_trials(search):
    plain, highway = (TASK.needs(on_digits(block, seed=4, **search)) for block in ("plain", "highway"))
    assert [one.trial for one in highway] == list(range(len(highway)))
    assert [
        one.but(block="highway", block_options=other.block_options) for one, other in zip(plain, highway, strict=True)
    ] == list(highway)
    assert TASK.needs(on_digits(**search)) == highway
    assert all(TASK.needs(trial) == () for trial in highway)


def test_a_tuned_rate_has_one_trial_a_rate():
    trials = TASK.needs(on_digits(**TUNED))
    assert [trial.recipe["rate"] for trial in trials] == TUNED["rates"]
    assert {trial.seed for trial in trials} == {SEARCH_SEED}
    assert all("rates" not in trial.recipe for trial in trials)


def test_a_search_draws_gate_biases_for_gates_alone():
    plain, highway = (TASK.needs(on_digits(block, **SEARCHED)) for block in ("plain", "highway"))
    assert [trial.seed for trial in highway] == [SEARCH_SEED + trial for trial in range(6)]
    assert all(trial.block_options == {} for trial in plain)
    assert len({trial.block_options["gate_bias"] for trial in highway}) == 6
    assert len({TASK.group(trial) for trial in highway}) == 2  # one of each activation


@SEARCHES
def test_the_best_trials_hyper_parameters_win(search):
    one = on_digits(seed=4, **search)
    trials = TASK.needs(one)

    def chosen(*losses):
        ends = {trial: {"final_loss": loss, "success": 0.0} for trial, loss in zip(trials, losses, strict=True)}
        return TASK.resolve(one, ends)

    def run_of(trial):
        rates = {"rates": search["rates"]} if "rates" in search else {}
        return trial.but(trial=None, seed=4, recipe={**trial.recipe, **rates})

    nothing = [None] * (len(trials) - 2)
    assert chosen(0.3, 0.2, *nothing) == run_of(trials[1])
    assert chosen(None, None, *nothing) == run_of(min(trials, key=lambda trial: trial.recipe["rate"]))


def test_where_nothing_is_searched_nothing_is_needed():
    assert TASK.needs(on_digits()) == ()
    assert TASK.resolve(on_digits(), {}) == on_digits()


@pytest.mark.parametrize("ended", [{}, {"final_loss": None, "success": None}])
def test_no_block_is_tuned_on_fewer_rates(ended):
    """A trial that ran out of time, or of memory, left no verdict: it has not diverged."""
    one = on_digits(**TUNED)
    ends = {trial: {"final_loss": 0.2, "success": 1.0} for trial in TASK.needs(one)}
    with pytest.raises(BadInput, match=r"rate 0\.1"):
        TASK.resolve(one, {**ends, TASK.needs(one)[1]: ended})


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"rate": "tuned"}, "rates"),
        ({"search": {"space": "figure-2", "trials": 6}}, "figure-2"),
        ({"search": "figure-1"}, "search"),
        ({"search": {"space": "figure-1", "trials": 0}}, "trials"),
        ({**TUNED, **SEARCHED}, "both"),
    ],
)
def test_searches_that_cannot_be(recipe, says):
    with pytest.raises(BadInput, match=says):
        TASK.needs(on_digits(**recipe))


# -------------------------------------------------------------------------------------------------------------- ladder


def rung(depth, seed=0, **recipe):
    ladder = {"depths": [1, 2, 4], "seeds": 2, "rates": [0.01]}
    return on_digits("plain", depth=depth, seed=seed, **{"rate": "tuned", "rates": [0.01], "ladder": ladder, **recipe})


def trial_of(cell):
    (trial,) = (one for one in TASK.needs(cell) if one.trial is not None)
    return trial


def test_a_rung_and_its_trials_wait_for_every_seed_of_the_next_shallower():
    assert rung_below(rung(1)) == ()
    assert set(rung_below(rung(4))) == set(TASK.needs(trial_of(rung(4)))) == {rung(2, seed) for seed in range(2)}


def test_a_ladder_of_listed_seeds_at_one_rate():
    one = rung(4, seed=7, rate=0.1, ladder={"depths": [2, 4], "seeds": [5, 7]})
    assert rung_below(one) == (one.but(depth=2, seed=5), one.but(depth=2, seed=7))


STALLED, TRAINED, SKIPPED = {"success": 0.0}, {"success": 1.0}, {"success": None}


@pytest.mark.parametrize(
    ("outcomes", "raises"),
    [
        ([STALLED, STALLED], Skip),
        ([SKIPPED, SKIPPED], Skip),
        ([{}, {}], Skip),
        ([STALLED, TRAINED], None),
        ([None, TRAINED], None),
        ([None, STALLED], BadInput),
        ([None, None], BadInput),
    ],
)
def test_one_seed_that_trained_is_enough(outcomes, raises):
    """A seed that failed to finish (``None``) may have trained, so the rungs above have no verdict."""
    trial = trial_of(rung(4))
    ends = {one: end for one, end in zip(rung_below(trial), outcomes, strict=True) if end is not None}
    if raises is None:
        assert TASK.resolve(trial, ends) == trial
    else:
        with pytest.raises(raises, match="depth 2"):
            TASK.resolve(trial, ends)


LADDER = [rung(depth, seed) for depth in (1, 2, 4) for seed in range(2)]


def climbed(store, statuses):
    """Statuses of the cells of each depth, in a run whose measured cells have ``statuses``; only they are measured
    again."""
    schedule = Schedule(store)
    schedule.add(with_needs(LADDER))
    while batch := schedule.ready():
        for item in batch:
            item.status, message = item.refused or (statuses[item.cell.depth], None)
            success = {Status.OK: 1.0, Status.STALLED: 0.0}.get(item.status)
            columns = {"digest": item.digest, "status": item.status, "message": message, "value": success}
            store.put(item.digest, [row(**columns, metric=metric) for metric in ("success", "final_loss")])
    return {depth: {item.status for item in schedule.items.values() if item.cell.depth == depth} for depth in (1, 2, 4)}


def test_a_rung_whose_lower_one_failed_is_tried_again(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        ended = climbed(store, {1: Status.OK, 2: Status.TIMEOUT})
        assert ended[1] == {Status.OK}
        assert ended[2] == {Status.TIMEOUT, Status.FAILED}  # its trial, so its seeds
        assert ended[4] == {Status.FAILED}
        assert climbed(store, {2: Status.OK, 4: Status.STALLED})[4] == {Status.STALLED}


def test_a_rung_that_was_skipped_is_measured_once_the_lower_one_trains(tmp_path):
    with Store(tmp_path / "store.sqlite") as store:
        assert climbed(store, {1: Status.OK, 2: Status.STALLED})[4] == {Status.SKIPPED}
        schedule = Schedule(store)
        schedule.add(with_needs(LADDER))
        assert schedule.ready() == []  # for as long as the reason holds, it is done
        for item in schedule.items.values():
            if item.cell.depth == 2:
                columns = {"digest": item.digest, "status": "ok", "value": 1.0}
                store.put(item.digest, [row(**columns, metric=metric) for metric in ("success", "final_loss")])
        assert climbed(store, {4: Status.OK})[4] == {Status.OK}


# --------------------------------------------------------------------------------------------------------- populations


def member(block="highway", family="dense", **changes):
    return on_digits(block, family, **{"rate": 0.05, "together": 8, **changes})


OTHER = {"steps": 21, "depth": 3, "optimiser": "adam", "together": 9, "dtype": "float64"}
OTHER |= {"family_options": {"activation": "tanh"}}


def test_cells_of_one_group():
    one = member(trial=0, seed=1000)
    same = [
        member(trial=7, seed=1007),
        member(trial=1, rate=0.2, momentum=0.5, decay=1.0, weight_decay=0.1),
        member(trial=1, block_options={"gate_bias": -3.0}),
    ]
    other = [
        member(trial=8),
        member(seed=1000),
        member("plain", trial=0),
        *(member(trial=0, **{name: value}) for name, value in OTHER.items()),
    ]
    assert {TASK.group(cell) for cell in same} == {TASK.group(one)}
    assert TASK.group(one) not in {TASK.group(cell) for cell in other}
    assert TASK.group(member(seed=0)) == TASK.group(member(seed=7)) != TASK.group(member(seed=8))


@pytest.mark.parametrize("family", ["conv", "attention", "mlp"])
def test_a_gpu_takes_all_that_vmap_runs(family):
    assert len({TASK.group(member(family=family, device="cuda", seed=seed)) for seed in range(2)}) == 1


def test_the_size_of_populations(tmp_path):
    cells = [member(trial=trial) for trial in range(40)]
    checkpoints = CheckpointFolder(tmp_path, {cell: str(cell.trial) for cell in cells})

    def sizes(cells, checkpoints=None):
        return [len(population) for population in populations.populations_of(cells, checkpoints)]

    assert sizes(cells) == sizes(cells, checkpoints) == [14, 14, 12]
    assert sizes([cell.but(device="cuda") for cell in cells]) == [40]


@pytest.mark.parametrize(
    ("changes", "networks"),
    [
        ({}, 8),
        ({"together": 100}, populations.MEMBERS_ON_CPU),
        ({"together": 100, "device": "cuda"}, 100),
        ({"together": 1}, 1),
        ({"family": "conv"}, 1),
    ],
)
def test_how_many_networks_are_in_memory(changes, networks):
    assert populations.networks_in_memory(member(**changes)) == networks


def test_memory_is_of_all_networks():
    assert tasks.get("gates").cost(member(task="gates")).bytes == 8 * TASK.cost(member(together=1)).bytes


@pytest.mark.parametrize("number", [0, 2.5])
def test_a_number_of_networks_that_is_none(number):
    with pytest.raises(BadInput, match="together"):
        TASK.group(member(together=number))
