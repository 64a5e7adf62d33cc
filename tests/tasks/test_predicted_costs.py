"""Predicted peaks against measured ones, also where they are no line in depth, and predicted seconds."""

import pytest

from highway_bench.tasks import predicted_costs as predicting
from highway_bench.tasks import tasks
from highway_bench.tasks.predicted_costs import (
    DEPTHS,
    MOST_PEAK,
    SETUP,
    PeakByDepth,
    StepBytes,
    exceeding,
    peak_by_depth,
    predicted_bytes,
    predicted_seconds,
    step_bytes,
)
from tests.cells import cell

DEEP = 16


@pytest.mark.parametrize(
    ("block", "family"),
    [
        *(("highway", family) for family in ("dense", "conv", "bilstm", "transformer")),
        ("attn-residual", "dense"),
        ("dense-average", "dense-pair"),
        ("pre-norm", "examples.user_layers:feed_forward"),
    ],
)
def test_a_deeper_network_is_within_five_percent(block, family):
    one = cell("memory", block, family, depth=DEEP, phase="train-step", seq_len=5)
    assert peak_by_depth(one).at(DEEP) == pytest.approx(step_bytes(one).peak, rel=0.05)


@pytest.mark.parametrize(("dataset", "family"), [("mnist-5k", "conv"), ("adding", "bilstm")])
def test_training_on_data(dataset, family):
    one = cell("trainability", "highway", family, depth=DEEP, dataset=dataset, rate="tuned", optimiser="adam")
    sgd = one.but(recipe={"momentum": 0.0})
    assert step_bytes(sgd).peak < step_bytes(one).peak
    assert peak_by_depth(one).at(DEEP) == pytest.approx(step_bytes(one).peak, rel=0.05)


def test_several_networks_count_as_many_times():
    one = cell("trainability", depth=4, dataset="digits")
    assert predicted_bytes(one.but(recipe={"together": 4})) == pytest.approx(4 * predicted_bytes(one), rel=1e-6)


def peaks(peak, saved):
    first, middle, last = map(StepBytes, peak, saved)
    return PeakByDepth((first, middle, last))


def test_lines_parabolas_and_kinks():
    line = peaks((14, 18, 22), (4, 8, 12))
    assert [line.at(depth) for depth in (*DEPTHS, 50)] == [14, 18, 22, 60]
    square = peaks((16, 64, 144), (16, 64, 144))
    assert [square.at(depth) for depth in (*DEPTHS, 50)] == [16, 64, 144, 2500]
    kink = peaks((10, 10, 18), (4, 8, 12))
    assert kink.at(16) == 26
    short_history = peaks((10, 30, 40), (4, 8, 16))
    assert short_history.at(16) == 50
    assert (line.depth_in(60), line.depth_in(59.5), line.depth_in(1), square.depth_in(2500)) == (50, 49, 0, 50)


def test_only_what_may_not_fit_is_measured(monkeypatch):
    one = cell("memory", depth=1_000, phase="train-step")
    needed = predicted_bytes(one)
    assert exceeding(one, needed - 1) == needed
    assert exceeding(one, needed) is None

    def fails(cell):
        raise AssertionError("a network ran")

    monkeypatch.setattr(predicting, "step_bytes", fails)
    closed = tasks.get("memory").cost(one).bytes
    assert exceeding(one, MOST_PEAK * closed) is None
    assert exceeding(one, closed / 4) == closed
    assert exceeding(one, closed / 2, by_closed_form=True) is None
    shallow = one.but(depth=10)
    assert exceeding(shallow, tasks.get("memory").cost(shallow).bytes) is None  # it might not fit where it is measured


def test_a_published_network_keeps_the_closed_form():
    one = cell("propagation", "highway", "dense", recipe={"layout": "stemless"}, phase=None)
    assert predicted_bytes(one) == tasks.get("propagation").cost(one).bytes


TRAINED = cell("trainability", depth=50, dataset="digits", steps=100, rate="tuned")


def test_the_seconds_of_a_step_are_a_line_in_the_depth(monkeypatch):
    monkeypatch.setattr(predicting, "step_seconds", lambda cell, dataset: 1.0 + 0.5 * cell.depth)
    assert predicted_seconds(TRAINED) == pytest.approx(SETUP + 100 * 26)
    monkeypatch.setattr(predicting, "step_seconds", lambda cell, dataset: 1.0 / cell.depth)  # disturbed
    assert predicted_seconds(TRAINED) == pytest.approx(SETUP + 100 / 24)
    assert predicted_seconds(TRAINED.but(depth=5)) == pytest.approx(SETUP + 100 / 5)


@pytest.mark.parametrize("changes", [{"device": "cuda"}, {"dataset": None}, {"recipe": {}}])
def test_others_have_the_closed_form_of_seconds(changes):
    other = TRAINED.but(**changes)
    assert predicted_seconds(other) == tasks.get("trainability").cost(other).seconds
