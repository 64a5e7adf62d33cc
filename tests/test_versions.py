"""What lets the package run with other versions: torch's internals in one module, and bounds that are run."""

import re
import tomllib
from pathlib import Path

import pytest
import torch

from highway_bench.measure.torch_internals import COUNTERS, Internal, LacksInternal

ROOT = Path(__file__).parents[1]


def test_what_is_lost_without_one_is_in_the_message():
    absent = Internal(("torch._nowhere:name", "torch.cuda:_nothing"), "nothing is timed")
    assert absent.found is None
    expected = f"torch {torch.__version__} has no torch._nowhere.name or torch.cuda._nothing: nothing is timed"
    with pytest.raises(LacksInternal, match=re.escape(expected)):
        absent.needed()
    assert COUNTERS.lack is None


def test_the_lowest_set_has_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = dict(need.partition(",")[0].split(">=") for need in project["dependencies"])
    lines = (ROOT / "tests/versions/lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: lowest[name] for name in bounds if not (lowest[name] + ".").startswith(f"{bounds[name]}.")} == {}
