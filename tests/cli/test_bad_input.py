"""Bad input: one clear line on stderr, exit status 2, no traceback, nothing measured.

What each value may be is tested where it is checked.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from highway_bench.blocks import blocks

RUN = ("run", "--profile", "smoke", "--store", "store.sqlite")

LAYERS = """
import sys

from torch import nn

def wider(width):
    return nn.Linear(width, width + 1)

def fine(width):
    return nn.Linear(width, width)

def raises(width):
    raise RuntimeError("no such layer")

def leaves(width):
    sys.exit(7)

class Leaving(nn.Linear):
    def forward(self, x):
        sys.exit(7)

def leaves_later(width):
    return Leaving(width, width)
"""

# Blocks whose making ends Python; that of the first where it is given an option.
LEAVING_BLOCK = """
import sys

from highway_bench.blocks import Block, register_block

@register_block("leaving", equation="y = x", source="", summary="")
class Leaving(Block):
    def __init__(self, site, *, now: bool = False):
        super().__init__()
        self.transform = site.family.transform(site)
        if now:
            sys.exit(7)

    def forward(self, x):
        return x + self.transform(x)

@register_block("always-leaving", equation="y = x", source="", summary="")
class AlwaysLeaving(Leaving):
    def __init__(self, site):
        super().__init__(site, now=True)

@register_block("leaving-quietly", equation="y = x", source="", summary="")
class LeavingQuietly(Leaving):
    def __init__(self, site):
        sys.exit(0)
"""
LONG = "a" * 300

CASES = {
    "unknown task": ((*RUN, "thrughput"), "did you mean throughput?"),
    "unknown block": ((*RUN, "--block", "higway"), "did you mean highway, highway-free?"),
    "a block that needs another family": (
        (*RUN, "--family", "dense", "--block", "value-residual"),
        "needs the transform of family 'attention'",
    ),
    "check of a block that needs another family": (
        ("check", "value-residual", "--family", "dense"),
        "needs the transform of family 'attention'",
    ),
    "depth 0": ((*RUN, "--depth", "0"), "depth must be at least 1"),
    "negative seed": ((*RUN, "--seed", "-1"), "seed must be at least 0"),
    "changed shape": ((*RUN, "--family", "bad_layers:wider"), "shape of its input (vector: (2, 64)"),
    "raising factory": ((*RUN, "--family", "bad_layers:raises"), "RuntimeError: no such layer"),
    "leaving factory": ((*RUN, "--family", "bad_layers:leaves"), "SystemExit: 7"),
    "leaving layer": ((*RUN, "--family", "bad_layers:leaves_later"), "raises SystemExit"),
    "leaving module": ((*RUN, "--family", "leaving:make"), "'leaving:make' failed to import: SystemExit: 7"),
    "leaving plug-in": ((*RUN, "--plugin", "leaving.py"), "'leaving' failed to import: SystemExit: 7"),
    "plug-in that leaves a list": (("list", "--plugin", "leaving"), "'leaving' failed to import: SystemExit: 7"),
    "leaving block": (
        (*RUN, "--plugin", "leaving_block.py", "--block", "leaving", "--block-option", "now=true"),
        "{'now': True}: SystemExit: 7",
    ),
    "block that leaves show": (
        ("show", "always-leaving", "--plugin", "leaving_block.py"),
        "SystemExit: 7 (leaving_block.py, line 12,",
    ),
    "block that leaves show with 0": (
        ("show", "leaving-quietly", "--plugin", "leaving_block.py"),
        "SystemExit: 0 (leaving_block.py, line ",
    ),
    "no factory": ((*RUN, "--family", "bad_layers:nothing"), "'bad_layers' has no 'nothing'"),
    "no module": ((*RUN, "--family", "no_layers:make"), "'no_layers'"),
    "option": ((*RUN, "--block", "highway", "--block-option", "bias=1"), "it has gate_bias"),
    "no heads": ((*RUN, "--family", "attention", "--family-option", "heads=0"), "heads"),
    "kind of layer": ((*RUN, "--family", "bad_layers:fine", "--family-option", "kind=cube"), "has no kind 'cube'"),
    "batch": ((*RUN, "trainability", "--batch-size", "9999"), "batch of 9999"),
    "length of nothing": ((*RUN, "--family", "dense", "--seq-len", "8"), "sequences"),
    "option without value": ((*RUN, "--recipe", "steps"), "write it as name=value"),
    "recipe word of others": (("run", "memory", "--recipe", "steps=1"), "known: none"),
    "recipe value": ((*RUN, "--recipe", "rate=1e400"), "not inf"),
    "recipe digits": ((*RUN, "--recipe", f"rate={'1' * 5_000}"), "not '1111"),
    "recipe brackets": ((*RUN, "--recipe", f"rate={'[' * 50_000}"), "not '[[[["),
    "recipe text": ((*RUN, "--recipe", "samples=abc", "--dry-run"), "samples"),
    "unwritable store": ((*RUN[:3], "--store", "file/store.sqlite"), "file/store.sqlite"),
    "damaged store": ((*RUN[:3], "--store", "damaged.sqlite"), "damaged.sqlite: file is not a database"),
    "another database": ((*RUN[:3], "--store", "other.sqlite"), "other.sqlite"),
    "no plug-in": ((*RUN, "--plugin", "no_plugin"), "'no_plugin' failed to import: ModuleNotFoundError"),
    "no plug-in file": ((*RUN, "--plugin", "none.py"), "'none.py'"),
    "broken plug-in": ((*RUN, "--plugin", "broken.py"), "'broken' failed to import: ZeroDivisionError"),
    "plug-in without name": ((*RUN, "--plugin", "my-gate.py"), "'my-gate'"),
    "plug-in of a taken name": ((*RUN, "--plugin", "json.py"), "'json'"),
    "missing data": ((*RUN, "trainability", "--dataset", "sentiment"), "movie-reviews.tsv"),
    "show": (("show", "higway"), "did you mean highway"),
    "show depth": (("show", "highway", "--depth", "0"), "depth must be at least 1"),
    "show width": (("show", "highway", "--width", "999999999"), "GiB of memory, and"),
    "show many layers": (("show", "highway", "--depth", str(10**20)), "the most is 20,000"),
    "show steps": (("show", "highway", "--family", "bilstm", "--seq-len", str(2**31 - 1)), "does not fit"),
    "show no steps": (("show", "highway", "--family", "bilstm", "--seq-len", "0"), "1 to 2147483647 steps"),
    "depth": ((*RUN, "--depth", str(10**20)), "at most 2147483647"),
    "check": (("check", "higway"), "did you mean highway"),
    "report": (("report", "--store", "none.sqlite"), "no store at none.sqlite"),
    "export": (("results", "export", "rows.csv", "--store", "none.sqlite"), "no store at none.sqlite"),
    "export by run": (("results", "export", "data", "--by-run", "--store", "none.sqlite"), "no store at none.sqlite"),
    "import of nothing": (("results", "import", "none.parquet", "--store", "store.sqlite"), "none.parquet"),
    "import of text": (("results", "import", "damaged.sqlite", "--store", "store.sqlite"), "damaged"),
    "comparison of nothing": (("compare-my-block", "none.py"), "'none.py'"),
    "comparison of no block": (("compare-my-block", "file.py"), "file.py registers no block"),
    "comparison without rows": (
        ("compare-my-block", "highway_bench.blocks.rezero", "--rows", "none"),
        "none is no folder",
    ),
    "prune": (("results", "prune", "--store", "store.sqlite"), "no store at store.sqlite"),
    "decide by family": (
        ("decide", "--part", "seconds", "--family", "transformer", "--store", "store.sqlite"),
        "'seconds'",
    ),
    "merge": (("results", "merge", "all.sqlite", "none.sqlite"), "no store at none.sqlite"),
    "results": (("results", "show", "--store", "damaged.sqlite"), "not a database"),
    "fetch": (("data", "fetch", "mnst"), "did you mean mnist"),
    "data option": (("data", "check", "digits", "--option", "corpus=tweets"), "'corpus'"),
    "new-block": (("new-block", "My_Gate"), "'My_Gate'"),
    "long name": (("new-block", LONG), f"{LONG}.py: File name too long"),
    "long plug-in": ((*RUN, "--plugin", f"{LONG}.py"), "no such file"),
    "long store": ((*RUN[:3], "--store", LONG), f"cannot write the store {LONG}: File name too long"),
    "long store to read": (("results", "show", "--store", LONG), f"no store at {LONG}"),
    "taken block": (("new-block", "highway"), "'highway'"),
}


@pytest.fixture
def around(here: Path) -> Path:
    """What the cases refer to."""
    (here / "bad_layers.py").write_text(LAYERS)
    (here / "broken.py").write_text("1 / 0\n")
    (here / "leaving.py").write_text("import sys\nsys.exit(7)\n")
    (here / "leaving_block.py").write_text(LEAVING_BLOCK)
    (here / "json.py").write_text("")
    (here / "my-gate.py").write_text("")
    (here / "file").write_text("")
    (here / "file.py").write_text("")
    (here / "damaged.sqlite").write_text("this is not a database at all" * 10)
    with sqlite3.connect(here / "other.sqlite") as other:
        other.execute("CREATE TABLE cats (name)")
    other.close()
    return here


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_status_2(case: str, around: Path, invoke: Any) -> None:
    words, message = CASES[case]
    done = invoke(*words)
    sys.modules.pop("bad_layers", None)
    sys.modules.pop("leaving_block", None)
    for name in ("leaving", "always-leaving", "leaving-quietly"):
        blocks.unregister(name)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("highway-bench: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (around / "store.sqlite").exists()


def test_missing_cuda(invoke: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    done = invoke(*RUN, "--device", "cuda")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "'cuda'" in done.stderr


def test_broken_data_file(here: Path, invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "movie-reviews.tsv").write_text("1\t2.0\tgood\n")
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(here))
    for words in [("data", "check", "sentiment"), (*RUN, "trainability", "--dataset", "sentiment")]:
        done = invoke(*words)
        assert done.exit_code == 2
        assert done.stderr == (
            f"highway-bench: {here}/movie-reviews.tsv: truncated, 11 bytes and 1 rows instead of 1,383,098 and 10,605\n"
        )


def test_message_of_several_lines_is_one(invoke: Any, here: Path) -> None:
    (here / "wordy.py").write_text("raise ValueError('first\\nsecond')\n")
    assert invoke("list", "--plugin", "wordy.py").stderr.endswith("ValueError: first second\n")


def test_bugs_show_themselves(invoke: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only errors that a user can mend are one line; any other keeps its traceback."""

    def broken(section: str) -> None:
        raise KeyError(section)

    monkeypatch.setattr("highway_bench.catalogue.catalogue", broken)
    assert isinstance(invoke("list", "tasks").exception, KeyError)
