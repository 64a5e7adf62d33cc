"""``data``: what there is, what is missing, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def test_list_says_which_folders_are_searched(here: Path, invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = " ".join(invoke("data", "list").stdout.split())
    assert "the one that HIGHWAY_BENCH_DATA names (it is not set)" in shown
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(here))
    listed = json.loads(invoke("data", "list", "--json").stdout)
    assert listed["data_folder"] == str(here)
    assert listed["cache_folder"] == str(here / "cache" / "highway_bench")


def test_fetch_of_what_is_here(invoke: Any) -> None:
    assert invoke("data", "fetch", "digits").stdout == "nothing is missing: digits is here already\n"


def test_fetch(here: Path, invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("highway_bench.data.sentiment.fetch_corpora", lambda: here / "fetched")
    assert invoke("data", "fetch", "sentiment").stdout == f"sentiment: {here / 'fetched'}\n"


def test_check(invoke: Any) -> None:
    [digits] = json.loads(invoke("data", "check", "digits", "--json").stdout)["datasets"]
    assert (digits["train"], digits["outputs"], digits["target"]) == ([1437, 1, 8, 8], 10, "class")
    assert "1,437 × 1 × 8 × 8" in invoke("data", "check", "dig*").stdout


def test_check_of_real_files(data_folder: Path, invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(data_folder))
    done = invoke("data", "check", "sentiment", "--option", "corpus=tweets", "--json")
    [tweets] = json.loads(done.stdout)["datasets"]
    assert tweets["chance_accuracy"] == pytest.approx(0.69, abs=0.01)
