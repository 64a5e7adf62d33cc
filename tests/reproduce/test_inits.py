"""Inits: the grid, and the verdict for given successes."""

import math

import pytest

from highway_bench.studies.reproduce.base import reproductions
from highway_bench.studies.reproduce.inits import ACTIVATIONS
from highway_bench.studies.reproduce.request import Request
from tests.reproduce.conftest import A, S, U, followed, rows_of, verdicts

STUDY = reproductions.get("inits")


def outcome(fails, loss=2.3):
    """The conclusion if highway fails with ``loss`` at these (init, activation, seed), and plain fails always."""

    def metrics(cell):
        options = cell.family_options
        triple = options.get("init", "default"), options.get("activation", "relu"), cell.seed - STUDY.version.seen
        success = cell.block == "highway" and triple not in fails
        return {"success": float(success), "final_loss": 0.1 if success else loss, "rate": 0.1}

    return STUDY.conclude(rows_of(followed(STUDY, Request(), metrics)), Request())


EVERY = {("small", "gelu", seed) for seed in range(5)}


@pytest.mark.parametrize(
    ("fails", "loss", "verdict"),
    [
        (set(), 2.3, S),  # the rule was written after its runs
        ({("small", "gelu", 1)}, 2.3, S),
        (EVERY, 2.3, U),  # 75 of 80
        (EVERY, math.inf, U),
        (EVERY | {("small", g, seed) for g in ACTIVATIONS for seed in range(5)}, 2.3, A),
    ],
)
def test_the_verdict(fails, loss, verdict):
    result = outcome(fails, loss)
    assert verdicts(result) == [verdict]
    assert ("small with gelu" in result.findings[0].measured) == bool(fails)
    assert "plain: 0 % [0, " in result.findings[0].measured
    assert [picture.name for picture in result.pictures] == ["inits"]
