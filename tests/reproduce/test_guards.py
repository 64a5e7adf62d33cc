"""The guard of comparisons: an untrained reference."""

from __future__ import annotations

import math

from highway_bench.reproduce.arms import Trained, left_chance, untrained
from highway_bench.reproduce.quantities import Region


def test_an_untrained_reference() -> None:
    trained = Trained("test_accuracy", Region(least=0.8, closed=True), "an accuracy of 80 %")
    runs = [{"test_accuracy": value} for value in (0.9, 0.8, 0.5, math.nan)]
    assert untrained("identity", runs, trained) == ""
    assert untrained("identity", runs[1:], trained) == "identity is untrained: an accuracy of 80 % at 1 of 3 seeds"
    assert untrained("identity", [], trained)
    assert left_chance("mnist-5k").text == "a final loss below 1.15 nat"
    assert not left_chance("mnist-5k").by({"final_loss": math.inf})
