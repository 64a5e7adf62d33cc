"""What a version stands for does not change without a word: neither its source nor its numbers."""

import subprocess
import sys

import pytest

from tests import same_numbers, sources
from tests.sources import Entry


def test_sources_are_those_of_their_versions():
    ran = subprocess.run(  # in a process of its own: other tests register and remove entries
        [sys.executable, "-m", "tests.sources"], capture_output=True, text=True, cwd=sources.ROOT, check=False
    )
    assert not ran.returncode, ran.stderr


def test_twenty_small_cells_have_the_same_numbers():
    values = same_numbers.measured()
    assert same_numbers.differences(values) == []
    first = next(iter(values))
    name = next(name for name in values[first] if name.startswith("loss "))
    values[first][name] = 2 * (values[first][name] or 1.0)
    assert len(same_numbers.differences(values)) == 1


@pytest.mark.parametrize(
    ("after", "accepted", "fault"),
    [
        ({"block a": Entry("1", "x")}, False, None),
        ({"block a": Entry("1", "y")}, False, "another source"),
        ({"block a": Entry("1", "y")}, True, None),
        ({"block a": Entry("2", "y")}, False, None),
        ({"block a": Entry("0", "y")}, True, "went back"),
        ({}, True, "is gone"),
        ({"block a": Entry("1", "x"), "block b": Entry("1", "z")}, False, None),
    ],
)
def test_a_change_has_a_version_or_an_acceptance(after, accepted, fault):
    faults = sources.faults({"block a": Entry("1", "x")}, after, accepted=accepted)
    assert (fault is None and not faults) or (fault is not None and fault in faults[0])
