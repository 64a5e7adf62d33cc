"""Importing, ``--help`` and reporting do not pay for torch. What is loaded is checked, never seconds."""

import subprocess
import sys

import pytest

TORCH = {"torch"}
HEAVY = TORCH | {"numpy", "pandas", "scipy", "matplotlib", "seaborn", "sklearn"}


def loaded_by(code):
    """Top-level modules that a fresh interpreter has loaded after running ``code``."""
    script = f"{code}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


COMMAND = """
import sys
from highway_bench.cli import main
sys.argv = ["highway-bench", *{!r}]
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
"""


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        pytest.param("import highway_bench; dir(highway_bench)", HEAVY, id="highway_bench"),
        pytest.param("import highway_bench.registry, highway_bench.cell, highway_bench.errors", HEAVY, id="registry"),
        pytest.param("from highway_bench import Store", TORCH | {"pandas"}, id="Store"),
        pytest.param("from highway_bench import write_report", TORCH, id="write_report"),
        pytest.param(COMMAND.format(["--help"]), HEAVY, id="--help"),
        pytest.param(COMMAND.format(["list"]), HEAVY, id="list"),
        pytest.param(COMMAND.format(["list", "families"]), HEAVY, id="list families"),
    ],
)
def test_loads_no_more_than_it_needs(code, unwanted):
    assert not loaded_by(code) & unwanted
