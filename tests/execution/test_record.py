"""What a later run asks for that the last one did not, and the reverse."""

import pytest

from highway_bench.execution.record import changes, requested
from highway_bench.plan.grid import Grid
from highway_bench.plan.plan import Plan
from highway_bench.plan.profiles import Profile
from highway_bench.plan.selection import Selection

TINY = Profile("tiny", "", (Grid(task="memory", families=("dense",), depths=(2, 4), phases=("forward",)),))
FIRST = {"block": ["plain", "highway"]}


def asked(**words):
    return requested(Plan.of(TINY, Selection.of(None, device="cpu", **words)).needs)


def changed(before, after):
    """What is new, and what is gone, each behind a colon."""
    return [line.partition(": ")[2] for line in changes(before, after)]


@pytest.mark.parametrize(
    ("later", "lines"),
    [
        ({}, []),
        ({"block": "plain"}, ["block highway"]),
        (
            {"block": ["plain", "residual"], "depth": [4], "batch_size": 8},
            ["block residual; batch size 8", "block highway; depth 2; batch size 128"],
        ),
        ({"depth": list(range(4, 14))}, ["depth 5, 6, 7, 8, 9, 10 and 3 more", "depth 2"]),
        ({"block": ["residual"]}, []),  # another run, into the same store
    ],
)
def test_changed_options_are_two_lines(later, lines):
    assert changed(asked(**FIRST), asked(**{**FIRST, **later})) == lines


def test_words_of_a_recipe_count_and_trials_do_not():
    def ladder(**recipe):
        selection = Selection.of("trainability", device="cpu", family="dense", block="plain", recipe=recipe)
        return requested(Plan.of("smoke", selection).needs)

    before = ladder()
    assert before["rate"] == ["tuned"]
    assert changed(before, ladder(steps=30)) == ["steps 30", "steps 20"]
