"""Fixtures of the data's tests: no folder of data, and a stand-in for Hugging Face's library."""

from __future__ import annotations

import sys
from itertools import count
from types import ModuleType
from typing import Any

import pytest

PATHS = (f"made/{number}" for number in count())  # loaded sets are kept by their options


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """The cache's folder, which is empty; no folder of data is named."""
    monkeypatch.delenv("HIGHWAY_BENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "highway_bench"


class Table(dict[str, list[Any]]):
    """As much of ``datasets.Dataset`` as is used."""

    @property
    def column_names(self) -> list[str]:
        return list(self)

    def __len__(self) -> int:
        return len(next(iter(self.values())))


@pytest.fixture
def hub(monkeypatch):
    """Has the library hold these splits of columns; gives the path of their set."""

    def hold(**splits):
        def load_dataset(path, config, *, split):
            if split not in splits:
                raise ValueError(f'Unknown split "{split}". Should be one of {list(splits)}.\nmore')
            return Table(splits[split])

        module = ModuleType("datasets")
        module.load_dataset = load_dataset
        monkeypatch.setitem(sys.modules, "datasets", module)
        return next(PATHS)

    return hold
