"""Cells of a notebook in a real kernel: what they define is measured as the same code in a file is."""

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from highway_bench.results import Store

pytestmark = pytest.mark.slow  # kernels and scripts that start workers
LAYER = """
import torch
from torch import nn
from torch.nn import functional
import highway_bench as hb

GAIN = {"of": 0.5}

def helper(x):
    return torch.tanh(GAIN["of"] * x)

class Base(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

class Layer(Base):
    def forward(self, x):
        return functional.relu(helper(self.map(x)))
"""
BLOCK = """
@hb.register_block("NAME", equation="y = x + H(x) / 2", source="", summary="half of the branch")
class Half(hb.Block):
    def __init__(self, site):
        super().__init__()
        self.transform = site.family.transform(site)

    def forward(self, x):
        return x + helper(self.transform(x))
"""
PAGE = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
NOTEBOOK = os.environ.get("HIGHWAY_BENCH_NOTEBOOK")  # run or write
PROFILE = """
from highway_bench.plan.grid import Grid, Sizes
from highway_bench.plan.profiles import Profile

sizes = Sizes({"vector": 8}, {"vector": 16})
recipe = {"optimiser": "sgd", "rate": 0.1, "momentum": 0.9, "decay": 1.0, "steps": 6, "threshold": 0.1}
trained = Grid(task="trainability", families=("dense",), on_cpu=sizes, dataset="digits", recipe=recipe, seeds=(0, 1))
tiny = Profile("tiny", "", (
    trained,
    Grid(task="trainability", families=("dense",), on_cpu=sizes, dataset="digits", depths=(3,), seeds=(0, 1),
         recipe={**recipe, "together": 2}),
    Grid(task="memory", families=("dense",), on_cpu=sizes, phases=("train-step",)),
))
"""


def run_cells(folder, cells):
    """The cells of a new kernel in ``folder``, with their outputs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    run_notebook(folder, notebook)
    return list(notebook.cells)


def run_notebook(folder, notebook):
    """Run ``notebook`` in a new kernel in ``folder``; its outputs are replaced."""
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=900, kernel_name="python3", record_timing=False, resources=where)
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})


def test_a_cell_is_as_good_as_a_file(tmp_path):
    (tmp_path / "in_a_file.py").write_text(LAYER + BLOCK.replace("NAME", "in-a-file"))
    run = (
        'hb.run(profile=tiny, family=hb.family(Layer, vmap=True), block=["plain", NAME], store="cells.sqlite", '
        "workers=1);"
    )
    first = [LAYER, BLOCK.replace("NAME", "in-a-cell"), PROFILE, run.replace("NAME", '"in-a-cell"')]
    of_file = "import in_a_file\n" + run.replace("Layer", "in_a_file.Layer").replace("NAME", '"in-a-file"')
    cells = run_cells(tmp_path, [*first, of_file])
    shown = cells[3]["outputs"]
    assert [one["output_type"] for one in shown] == ["display_data"]  # it changed in place; nothing on stderr
    assert "store: cells.sqlite" in shown[0]["data"]["text/plain"]
    with Store(tmp_path / "cells.sqlite", read_only=True) as store:
        rows = store.frame()
        measured = [record["measured"] for record in store.runs().values()]
    assert measured == [10, 10]
    assert set(rows["status"]) <= {"ok", "stalled"}, rows["message"].dropna().unique()
    exact = rows[rows["task"].isin(["trainability", "memory"]) & ~rows["metric"].str.contains("second")]
    family = exact["family"].astype(str)
    assert family.nunique() == 2
    pair = exact["block"].astype(str).str.replace("in-a-file", "in-a-cell")
    values = exact.assign(pair=pair).groupby(
        ["task", "pair", "depth", "seed", "metric", "axis", "index"], observed=True
    )
    assert set(values.size()) == {2}
    assert (values[["value", "params"]].nunique(dropna=False) == 1).all(axis=None)
    comment = [LAYER.replace("return torch.tanh", "# the same\n    return torch.tanh"), *first[1:]]
    edit = LAYER.replace("0.5", "0.25") + run.replace("NAME", '"in-a-cell"')
    run_cells(tmp_path, [*comment, edit])
    with Store(tmp_path / "cells.sqlite", read_only=True) as store:
        assert [record["measured"] for record in store.runs().values()][2:] == [0, 10]


@pytest.mark.skipif(not NOTEBOOK, reason="its advice needs an idle machine: nox -s release runs it")
def test_the_page_of_docs_runs_whole(tmp_path):
    """Each cell has the outputs that the page keeps, apart from numbers. HIGHWAY_BENCH_NOTEBOOK=write keeps these."""
    notebook = nbformat.read(PAGE, as_version=4)
    run_notebook(tmp_path, notebook)
    if NOTEBOOK == "write":
        nbformat.write(notebook, PAGE)
    kept = nbformat.read(PAGE, as_version=4)
    assert list(map(stable, notebook.cells)) == list(map(stable, kept.cells))
    assert notebook.cells[-1]["outputs"][0]["data"]["text/plain"].endswith("True)")  # within the measured interval
    text = PAGE.read_text("utf-8")
    assert len(text) < 300_000
    assert not [place for place in (str(Path.home()), sys.prefix, str(tmp_path)) if place in text]


def stable(cell):
    """Of each output of ``cell`` its formats, and the columns and titles of tables."""
    found = [one.get("data", {}) for one in cell.get("outputs", [])]
    return [(sorted(one), re.findall(r"<(?:th|h4)>(.*?)</", "".join(one.get("text/html", "")))) for one in found]


def test_a_script_that_calls_exec(tmp_path):
    """Without a guard: workers do not run the script."""
    import subprocess

    text = LAYER + BLOCK.replace("NAME", "in-a-script") + PROFILE
    text += (
        "scope = {}\n"
        f"exec({LAYER!r}, scope)\n"
        'memory = Profile("memory", "", tiny.grids[2:3])\n'
        'layers = {"own": Layer, "executed": scope["Layer"], "map": lambda w: nn.Linear(w, w)}\n'
        'rows = hb.run(profile=memory, family=layers, block="in-a-script", store=None, workers=1).rows\n'
        'print(set(rows["status"]), sorted(name[:-6] for name in rows["family"].unique()))\n'
    )
    (tmp_path / "script.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.stdout == "{'ok'} ['__main__:executed-', '__main__:map-', '__main__:own-']\n", done.stderr
