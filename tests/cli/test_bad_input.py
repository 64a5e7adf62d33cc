"""Bad input: one clear line on stderr, exit status 2, no traceback, nothing measured.

What each value may be is tested where it is checked.
"""

import sqlite3
import sys

import pytest
import torch

from highway_bench.blocks import blocks

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
ATTENTION = "family 'attention'"
NO_STORE = "no store at none.sqlite"

CASES = {
    "run thrughput": "did you mean throughput?",
    "run --family dense --block value-residual": ATTENTION,
    "check value-residual --family dense": ATTENTION,
    "run --depth 0": "depth",
    f"run --depth {10**20}": "at most 2147483647",
    "run --seed -1": "seed",
    "run --family bad_layers:wider": "(2, 64)",
    "run --family bad_layers:raises": "RuntimeError: no such layer",
    "run --family bad_layers:leaves": "SystemExit: 7",
    "run --family bad_layers:leaves_later": "raises SystemExit",
    "run --family bad_layers:nothing": "'bad_layers' has no 'nothing'",
    "run --family bad_layers:fine --family-option kind=cube": "has no kind 'cube'",
    "run --family leaving:make": "'leaving:make'",
    "run --family no_layers:make": "'no_layers'",
    "run --family attention --family-option heads=0": "heads",
    "run --family dense --seq-len 8": "sequences",
    "run --block highway --block-option bias=1": "it has gate_bias",
    "run --plugin leaving_block.py --block leaving --block-option now=true": "SystemExit: 7",
    "run --plugin leaving.py": "SystemExit: 7",
    "run --plugin no_plugin": "'no_plugin'",
    "run --plugin none.py": "'none.py'",
    "run --plugin broken.py": "ZeroDivisionError",
    "run --plugin my-gate.py": "'my-gate'",
    "run --plugin json.py": "'json'",
    f"run --plugin {LONG}.py": "no such file",
    "run trainability --batch-size 9999": "batch of 9999",
    "run trainability --dataset sentiment": "movie-reviews.tsv",
    "run memory --recipe steps=1": "known: none",
    "run --recipe steps": "name=value",
    "run --recipe rate=1e400": "not inf",
    f"run --recipe rate={'1' * 5_000}": "not '1111",
    f"run --recipe rate={'[' * 50_000}": "not '[[[[",
    "run --recipe samples=abc --dry-run": "samples",
    "run --store file/store.sqlite": "file/store.sqlite",
    "run --store damaged.sqlite": "damaged.sqlite",
    "run --store other.sqlite": "other.sqlite",
    f"run --store {LONG}": LONG,
    "show higway": "did you mean highway",
    "show highway --depth 0": "depth",
    f"show highway --depth {10**20}": "20,000",
    "show highway --width 999999999": "GiB",
    f"show highway --width {10**400}": "2,147,483,647",
    f"show highway --family bilstm --seq-len {2**31 - 1}": "does not fit",
    "show highway --family bilstm --seq-len 0": "2147483647",
    "show always-leaving --plugin leaving_block.py": "(leaving_block.py, line 12",
    "show leaving-quietly --plugin leaving_block.py": "(leaving_block.py, line",
    "report --store none.sqlite": NO_STORE,
    "results export rows.csv --store none.sqlite": NO_STORE,
    "results export data --store none.sqlite": NO_STORE,
    "results import none.sqlite --store all.sqlite": NO_STORE,
    "results check --store none.sqlite --salvage new.sqlite": NO_STORE,
    "results import none.parquet --store store.sqlite": "none.parquet",
    "results import damaged.sqlite --store store.sqlite": "damaged",
    "results show --store damaged.sqlite": "damaged",
    f"results show --store {LONG}": LONG,
    "enter none.py --paper arXiv:1": "'none.py'",
    "enter file.py --paper arXiv:1": "file.py",
    "decide --part seconds --family transformer --store store.sqlite": "'seconds'",
    "fetch mnst": "did you mean mnist",
    "fetch digits --option corpus=tweets": "'corpus'",
    "advise dens --depth 2": "did you mean dense",
    "advise no_layers:make --depth 2 --minutes 1": "no_layers",
    "advise dense --depth 1000000000 --block plain --data-option pooled=2": "memory",
    "answer diffusion": "mlp",
    "new-block highway": "'highway'",
}
RUN = "--profile smoke --store store.sqlite"  # the last --store counts


@pytest.fixture
def around(here):
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


@pytest.mark.parametrize("line", CASES, ids=lambda line: line[:60])
def test_one_line_and_status_2(line, around, invoke):
    command, _, words = line.partition(" ")
    done = invoke(command, RUN if command == "run" else "", words)
    sys.modules.pop("bad_layers", None)
    sys.modules.pop("leaving_block", None)
    for name in ("leaving", "always-leaving", "leaving-quietly"):
        blocks.unregister(name)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("highway-bench: ")
    assert done.stderr.count("\n") == 1
    assert CASES[line] in done.stderr
    assert not (around / "store.sqlite").exists()


def test_missing_cuda(invoke):
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    done = invoke("run", RUN, "--device cuda")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "cuda" in done.stderr


def test_broken_data_file(here, invoke, monkeypatch):
    (here / "movie-reviews.tsv").write_text("1\t2.0\tgood\n")
    monkeypatch.setenv("HIGHWAY_BENCH_DATA", str(here))
    for line in ("fetch sentiment", f"run {RUN} trainability --dataset sentiment"):
        done = invoke(line)
        assert done.exit_code == 2
        assert done.stderr == (
            f"highway-bench: {here}/movie-reviews.tsv: truncated, 11 bytes and 1 rows instead of 1,383,098 and 10,605\n"
        )


def test_message_of_several_lines_is_one(invoke, here):
    (here / "wordy.py").write_text("raise ValueError('first\\nsecond')\n")
    assert invoke("list --plugin wordy.py").stderr.endswith("ValueError: first second\n")


def test_bugs_show_themselves(invoke, monkeypatch):
    """Only errors that a user can mend are one line; any other keeps its traceback."""

    def broken(section):
        raise KeyError(section)

    monkeypatch.setattr("highway_bench.catalogue.catalogue", broken)
    assert isinstance(invoke("list tasks").exception, KeyError)
