"""What Ray's errors say, in one line."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from highway_bench.execution.engines._cluster_nodes import first_line

MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.51.1
    Python: 3.12.7
This process on 10.0.0.2 was started with:
    Ray: 2.60.0
    Python: 3.11.13
"""


class NoMessageError(Exception):
    """An error of a library."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            RuntimeError(MISMATCH),
            "it has Ray 2.51.1 with Python 3.12.7, and this command Ray 2.60.0 with Python 3.11.13: install the same",
        ),
        (RuntimeError("\n  the node died\nat its end"), "the node died"),
        (NoMessageError(), "NoMessageError"),
    ],
)
def test_an_error_in_one_line(error: Exception, line: str) -> None:
    assert first_line(error) == line
    assert first_line(SimpleNamespace(cause=error)) == line  # type: ignore[arg-type]
