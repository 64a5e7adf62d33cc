"""A whole synthetic store."""

import pytest

from highway_bench.frames.results import Results
from tests.rows import frame_of, whole


@pytest.fixture(scope="session")
def standard():
    """The rows of a whole synthetic ``standard`` run."""
    return frame_of(whole())


@pytest.fixture(scope="session")
def results(standard):
    """The tables of that run, each computed once for all tests."""
    return Results(standard)
