"""Search: trials are the same in every arm and after a resume, and priors that cannot be are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from highway_bench.errors import BadInput, UnknownName
from highway_bench.tuning.space import FIGURE_1, FIGURE_1_GATES, Choice, LogUniform, Space, Uniform, get_space
from highway_bench.tuning.trials import JOURNAL, Search

ROWS = Space({"rate": LogUniform(1e-3, 1.0)})


def test_trials_lie_within_their_priors() -> None:
    trials = Search(FIGURE_1, FIGURE_1_GATES).ask(200)
    values = {name: [trial.values[name] for trial in trials] for name in trials[0].values}
    assert set(values) == {"rate", "momentum", "decay", "activation", "gate_bias"}
    assert all(1e-3 <= value <= 1 for value in values["rate"] + values["decay"])
    assert all(0.5 <= value <= 0.99 for value in values["momentum"])
    assert all(-10 <= value <= -1 for value in values["gate_bias"])
    assert 70 < values["activation"].count("tanh") < 130
    assert 70 < sum(value < 10**-1.5 for value in values["rate"]) < 130  # half of the logarithms
    assert 70 < sum(value < -5.5 for value in values["gate_bias"]) < 130
    assert len(set(values["rate"])) == 200


def test_the_streams_do_not_follow_each_other() -> None:
    """The two streams of one seed would draw equal uniform numbers if they were seeded alike."""
    space = Space({"rate": Uniform(0.0, 1.0)})
    other = Space({"gate_bias": Uniform(0.0, 1.0)})
    assert all(trial.values["rate"] != trial.values["gate_bias"] for trial in Search(space, other).ask(5))


def test_every_arm_has_the_same_shared_numbers() -> None:
    plain = Search(FIGURE_1, name="plain").ask(10)
    gated = Search(FIGURE_1, FIGURE_1_GATES, name="highway").ask(10)
    for one, other in zip(plain, gated, strict=True):
        assert {**one.values, "gate_bias": other.values["gate_bias"]} == other.values


def test_trials_do_not_hang_on_how_many_are_asked_for() -> None:
    search = Search(FIGURE_1, FIGURE_1_GATES)
    first = search.ask(3)
    assert search.ask(20)[:3] == first
    assert search.ask(2) == first[:2]
    assert Search(FIGURE_1, FIGURE_1_GATES).ask(20)[:3] == first
    assert Search(FIGURE_1, FIGURE_1_GATES, seed=1).ask(3) != first


def test_a_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    search = Search(FIGURE_1, FIGURE_1_GATES, name="highway", folder=tmp_path / "new")
    first = search.ask(4)
    search.tell(2, 0.5)
    search.tell(1, None)
    again = Search(FIGURE_1, FIGURE_1_GATES, name="highway", folder=tmp_path / "new")
    assert again.told() == {1: math.inf, 2: 0.5}
    assert again.ask(6)[:4] == first
    assert again.ask(6) == Search(FIGURE_1, FIGURE_1_GATES).ask(6)
    other = Search(FIGURE_1, name="plain", folder=tmp_path / "new")
    assert other.told() == {}


def test_a_line_that_a_kill_left_half_written(tmp_path: Path) -> None:
    first = Search(ROWS, folder=tmp_path).ask(3)
    with (tmp_path / JOURNAL).open("ab") as out:
        out.write(b'{"op_code":4,"worker_i')
    assert Search(ROWS, folder=tmp_path).ask(4)[:3] == first
    assert Search(ROWS, folder=tmp_path).ask(3) == first


def test_a_trial_that_has_ended_keeps_its_loss() -> None:
    search = Search(ROWS)
    search.ask(4)
    for number, loss in enumerate([math.nan, 0.3, 0.2, 0.2]):
        search.tell(number, loss)
    search.tell(3, 0.1)
    assert search.told() == {0: math.inf, 1: 0.3, 2: 0.2, 3: 0.2}


def test_a_renewed_search_draws_the_same_and_knows_nothing(tmp_path: Path) -> None:
    search = Search(FIGURE_1, FIGURE_1_GATES, folder=tmp_path)
    first = search.ask(3)
    search.tell(0, 0.5)
    search.renew()
    assert search.told() == {}
    assert search.ask(3) == first
    search.tell(0, 0.4)
    assert search.told() == Search(FIGURE_1, FIGURE_1_GATES, folder=tmp_path).told() == {0: 0.4}


@pytest.mark.parametrize(
    "other",
    [
        lambda folder: Search(Space({"rate": LogUniform(1e-4, 1.0)}), folder=folder),
        lambda folder: Search(Space({"rate": Uniform(1e-3, 1.0)}), folder=folder),
        lambda folder: Search(ROWS, seed=1, folder=folder),
    ],
)
def test_other_priors_need_another_store(tmp_path: Path, other: Callable[[Path], Search]) -> None:
    Search(ROWS, folder=tmp_path).ask(1)
    with pytest.raises(
        BadInput,
        match=r"^search 'search, shared' was made with other priors or another seed: name "
        r"another store$",
    ):
        other(tmp_path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Uniform(1.0, 0.5), "^the range from 1 to 0.5 is inverted$"),
        (lambda: LogUniform(0.1, 0.1), "^the range from 0.1 to 0.1 is empty$"),
        (lambda: LogUniform(0.0, 1.0), "^a log-uniform prior needs bounds above 0, not 0$"),
        (lambda: Uniform(0.0, math.inf), "^a prior needs finite bounds, not 0 and inf$"),
        (lambda: Uniform(math.nan, 1.0), "^a prior needs finite bounds"),
        (lambda: Choice(()), "^a choice needs at least one option$"),
        (lambda: Choice(("relu", "relu")), "^a choice lists an option twice: relu, relu$"),
        (lambda: Space({}), "^a search space needs at least one hyper-parameter$"),
        (lambda: Search(ROWS, ROWS), "^both streams of the search draw rate$"),
        (lambda: Search(ROWS, seed=-1), "^a search's seed must be a whole number, 0 or more, not -1$"),
        (lambda: Search(ROWS).ask(0), "^a search's trials must be a whole number, 1 or more, not 0$"),
        (lambda: Search(ROWS).tell(0, 1.0), "^trial 0 was not asked for$"),
    ],
)
def test_bad_input(make: Callable[[], object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match=r"^the search cannot be kept in .*file/inner: Not a directory$"):
        Search(ROWS, folder=tmp_path / "file" / "inner")
    (tmp_path / JOURNAL).write_text("no journal\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"is no journal of a search"):
        Search(ROWS, folder=tmp_path)


def test_spaces_have_names() -> None:
    assert get_space("figure-1") == (FIGURE_1, FIGURE_1_GATES)
    with pytest.raises(UnknownName, match=r"unknown search space 'figure1'; did you mean figure-1\?"):
        get_space("figure1")
    assert FIGURE_1.key == Space(dict(reversed(FIGURE_1.priors.items()))).key
