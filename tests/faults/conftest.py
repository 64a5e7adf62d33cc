"""What the proofs by faults share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from highway_bench.tasks import tasks

FAKES = Path(__file__).parents[1] / "execution"


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The plug-in with the fake tasks of the runner's tests."""
    monkeypatch.syspath_prepend(str(FAKES))
    importlib.import_module("runner_fakes")
    yield "runner_fakes"
    for name in tasks.names():
        if tasks.module_of(name) == "runner_fakes":
            tasks.unregister(name)
    sys.modules.pop("runner_fakes", None)
