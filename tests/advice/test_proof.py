"""The proof of advices: candidates, the truth of a setting, the regret of each method, and copies distinguished."""

import math
from types import SimpleNamespace

import pytest

from benches.proofs import advice as proof
from highway_bench.errors import NothingMeasured
from highway_bench.studies.advice.finals import QualityVerdict
from highway_bench.studies.advice.request import Connection, requested
from highway_bench.studies.decide.rounds import Trainer

PRE, GATE = Connection("pre-norm", "published"), Connection("highway", "published")


def advice(*use):
    return SimpleNamespace(
        use=use,
        verdict=QualityVerdict.TAKE,
        quality=SimpleNamespace(seeds=5),
        ladder=(1, 3, 9),
        about={"minutes": 5},
        results=[SimpleNamespace(connection=GATE, cost=SimpleNamespace(step=SimpleNamespace(value=1.5)))],
        exit_status=0,
        notes=[],
    )


def test_copies_are_told_apart():
    one, other = (Connection("pre-norm-copy", start) for start in ("published", "depth-aware"))

    def right(*use):
        return proof.is_right(proof.copies_line(0, lambda *_, **__: advice(*use)))

    assert [right(*use) for use in ((PRE, one), (PRE, other), ())] == [True] * 3
    assert [right(*use) for use in ((one, other), (PRE,))] == [False] * 2


@pytest.mark.parametrize("setting", proof.SETTINGS, ids=lambda one: one.layer)
def test_every_setting_has_ten_candidates_and_a_nearest_answer_among_them(setting):
    request = requested(
        setting.layer, depth=setting.depth, minutes=1, block=list(proof.BLOCKS), data="mnist-5k", width=setting.width
    )
    assert len(request.connections) == 10
    assert proof.nearest(setting, request.connections) in request.connections


def test_the_line_of_a_setting_has_the_truth_of_every_choice(monkeypatch):
    monkeypatch.setattr(proof, "SETTINGS", (proof.Setting("dense", 2, 8, "mlp", 4),))
    monkeypatch.setattr(proof, "BLOCKS", ("highway", "rezero"))
    monkeypatch.setattr(proof, "BEST", 1)
    monkeypatch.setattr(proof, "first_rung", lambda advice: PRE)
    line = proof.regret_line(0, lambda *_, **__: advice(GATE), Trainer(None, workers=1), 10.0)
    assert line["chosen"]["advise"] == "highway · published"
    assert {one for one in line["chosen"].values() if one} <= set(line["held_out"])
    assert all(len(losses) == 5 for losses in line["held_out"].values())
    assert line["step"] == {"highway · published": 1.5}
    assert all(one.value >= 0 for one in proof.regrets(line).values() if one)


def refuse(*_, **__):
    raise NothingMeasured("two minutes are too few")


def test_a_refusal_is_a_line_too(monkeypatch):
    monkeypatch.setattr(proof, "truth", lambda request, steps, chosen, trainer: {one: {"0": 1.0} for one in chosen})
    line = proof.regret_line(2, refuse, None, 2.0)
    assert (line["refused"], line["minutes"], "advise" in line["chosen"]) == ("two minutes are too few", 2.0, False)


def test_regret_is_in_per_cent_of_the_best_and_paired_by_seed():
    line = {
        "held_out": {"a": {"0": 1.0, "1": 3.0}, "b": {"0": 1.1, "1": 3.1}, "c": {"0": None, "1": 1.0}},
        "chosen": {"advise": "a", "pre-norm always": "b", "nearest kind": "c", "first rung": None},
    }
    found = proof.regrets(line)
    assert (found["advise"].value, found["pre-norm always"].value) == (0, pytest.approx(5))
    assert found["pre-norm always"].low == pytest.approx(5)  # the difference is equal at both seeds
    assert math.isinf(found["nearest kind"].value)
    assert found["first rung"] is None


def test_means_are_of_settings_in_which_every_method_chose_what_trains():
    def line(loss, advised):
        chosen = dict.fromkeys(proof.METHODS, "b") | {"advise": advised}
        held_out = {"a": {"0": 1.0, "1": 1.0}, "b": {"0": loss, "1": loss}, "c": {"0": None, "1": 1.0}}
        about = {"layer": "dense", "depth": 3, "width": 8, "refused": "", "step": {}}
        return about | {"chosen": chosen, "held_out": held_out}

    *settings, mean, misses = proof.regret_rows([line(1.1, "a"), line(1.3, "a"), line(9.0, "c")])
    assert (len(settings), mean[0], misses[1:3]) == (3, "mean of 2", ["1", "0"])
    assert (mean[1][:1], mean[2].split()[0]) == ("0", "20.0")
