"""The proof of advices: which bests are known, what a line says, and that lines are not made again."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from benches.proofs import advice as advice_proof
from highway_bench.studies.advice.answer import Learning
from highway_bench.studies.advice.finals import QualityVerdict
from highway_bench.studies.advice.request import Connection, requested
from highway_bench.studies.decide.candidate import Candidate

PRE, GATE = Connection("pre-norm", "published"), Connection("highway", "published")


def advice(*use):
    return SimpleNamespace(
        use=use,
        verdict=QualityVerdict.TAKE,
        quality=SimpleNamespace(seeds=5),
        ladder=(1, 3, 9),
        about={"minutes": 5},
        results=[SimpleNamespace(connection=PRE, learning=Learning.LEFT_OUT)],
        exit_status=0,
        notes=[],
    )


def runs(mean, seeds=5):
    return {seed: mean * (1 + 0.01 * (-1) ** seed) for seed in range(seeds)}


def test_a_best_is_known_where_it_leads_alone():
    losses = {
        ("conv", 5): {PRE: runs(1.0), GATE: runs(0.5)},
        ("conv", 10): {PRE: runs(1.0), GATE: dict.fromkeys(range(5), 1.0)},
        ("conv", 20): {PRE: runs(1.0), GATE: runs(0.5, seeds=3)},
    }
    assert list(advice_proof.bests(losses)) == [advice_proof.Known("conv", 5, GATE)]


def test_lines_say_whether_the_best_is_held_and_copies_are_told_apart():
    known = advice_proof.Task("known", 0, advice_proof.Known("conv", 5, GATE))
    copies = advice_proof.Task("copies", 0)

    def right(task, *use):
        return advice_proof.is_right(advice_proof.line_of(task, lambda *_, **__: advice(*use)))

    assert right(known, PRE, GATE)
    assert not right(known, PRE)
    assert advice_proof.line_of(known, lambda *_, **__: advice(GATE))["best_left_out"] is False  # PRE is
    one, other = (Connection("pre-norm-copy", start) for start in ("published", "depth-aware"))
    assert [right(copies, *use) for use in ((PRE, one), (PRE, other), ())] == [True] * 3
    assert [right(copies, *use) for use in ((one, other), (PRE,))] == [False] * 2


@pytest.mark.parametrize("family", advice_proof.templates())
def test_an_advice_asks_what_decide_asked(family):
    """The same connections, at the same widths, on the same data, in the same steps of the same recipe."""
    make = Mock(return_value=advice(GATE))
    advice_proof.line_of(advice_proof.Task("known", 0, advice_proof.Known(family, 5, GATE)), make)
    request = requested(*make.call_args.args, minutes=1, **make.call_args.kwargs)
    templates = advice_proof.templates()[family]
    assert set(request.connections) == {Connection(one.block, one.start) for one in templates}
    own = {"own_rate", "together", "evaluate", "warm_up"}
    for template in templates:
        cell = request.run(Connection(template.block, template.start), 600, 0.01, 0)
        known = Candidate(template, (5,), ()).run(5, 0.01, 0)
        assert cell.but(recipe={}) == known.but(recipe={})
        asked, trained = (make_recipe(one.recipe, own) for one in (cell, known))
        assert asked == trained


def make_recipe(words, without):
    """A recipe without some words; digits that are not pooled have no option."""
    data = {option: value for option, value in words.get("dataset", {}).items() if value != 1}
    return {"dataset": data, **{word: value for word, value in words.items() if word not in {*without, "dataset"}}}
