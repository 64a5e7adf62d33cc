"""A key depends on versions, on the source of what a user wrote, and on the items of a user's data; a source counts
without comments and layout, and one that was edited after its import is refused."""

import importlib
import sqlite3
import sys
import textwrap
from contextlib import closing
from dataclasses import replace

import pytest

from highway_bench.blocks import blocks
from highway_bench.data import datasets
from highway_bench.errors import BadInput
from highway_bench.execution import schedule
from highway_bench.execution.key import cell_key, check_unedited, modules_of, versions_of
from highway_bench.execution.progress import Opened
from highway_bench.execution.schedule import Schedule
from highway_bench.families import family
from highway_bench.plan.plan import Plan
from highway_bench.plan.selection import Selection
from highway_bench.plugins import load_plugins
from highway_bench.provenance import Identity
from highway_bench.results import Store
from highway_bench.results.schema import KEYED
from highway_bench.source import SourceTree
from tests.inline_engine import InlineEngine, cell_of


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a module into a folder on the import path."""
    root = tmp_path / "plugins"
    root.mkdir()
    monkeypatch.syspath_prepend(str(root))
    loaded = set(sys.modules)

    def to(name, text):
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    yield to
    for name in set(sys.modules) - loaded:
        if name.partition(".")[0] in {"gates", "layers", "beside"}:
            del sys.modules[name]


def test_same_meaning_same_digest(write):
    write("layers.py", "def double(x):\n    return 2 * x\n")
    before = SourceTree().digest(["layers"])
    write(
        "layers.py",
        '''
        """Layers."""
        # what it does


        def double(
            x,
        ):
            """Twice x."""
            return (2 * x)  # exactly
    ''',
    )
    assert SourceTree().digest(["layers"]) == before
    write("layers.py", "def double(x):\n    return 3 * x\n")
    assert SourceTree().digest(["layers"]) != before


def test_closure_follows_the_plugins_own_modules(write):
    write("gates/__init__.py", "from gates import other")
    write(
        "gates/first.py",
        """
        from __future__ import annotations
        import json
        from typing import TYPE_CHECKING
        import torch
        import beside
        from . import shared, nothing_of_a_module
        from .deep import name
        from highway_bench.families import Family
        from highway_bench.families import dense
        if TYPE_CHECKING:
            from gates import types_only
        def late():
            from gates.later import thing
    """,
    )
    for name in ("shared", "deep", "other", "later", "types_only", "unused"):
        write(f"gates/{name}.py", "name = 1")
    write("beside.py", "import unrelated_and_absent")
    closure = SourceTree().closure(["gates.first"])
    own = {name for name in closure if not name.startswith("highway_bench")}
    # ``nothing_of_a_module`` is a name of the package itself, so its __init__ counts too, with its imports.
    assert own == {"gates.first", "gates.shared", "gates.deep", "gates.later", "gates", "gates.other", "beside"}
    assert {"highway_bench.families", "highway_bench.families.base", "highway_bench.families.dense"} <= closure
    assert "gates.later" not in sys.modules  # in the closure, not imported


def test_factory_starts_at_its_module():
    assert modules_of(cell_of("memory", family="layers:make"))[2] == "layers"


def test_module_without_source(write):
    with pytest.raises(BadInput, match="'absent'"):
        SourceTree().digest(["absent"])
    write("layers.py", "def broken(:")
    with pytest.raises(BadInput, match=r"'layers'.*line 1"):
        SourceTree().digest(["layers"])


BLOCK = """
    from highway_bench.blocks import Block, register_block

    @register_block("{name}", equation="y = x", source="none", summary="for a test")
    class Joined(Block):
        factor = {factor}{remark}
"""


def test_a_changed_block_is_measured_again_and_no_other(write, run, log, cell):
    def block(name, factor, remark=""):
        write(f"gates/{name}.py", BLOCK.format(name=f"test-{name}", factor=factor, remark=remark))

    write("gates/__init__.py", "")
    block("one", 1)
    block("two", 1)
    cells = [cell(block="test-one"), cell(block="test-two")]
    try:
        for name in ("one", "two"):
            importlib.import_module(f"gates.{name}")
        assert run(cells).measured == 2
        block("one", 1, remark="  # a remark")
        assert run(cells).measured == 0
        block("one", 2)
        importlib.reload(sys.modules["gates.one"])
        summary = run(cells)
        assert (summary.measured, summary.stored) == (1, 1)
        assert [line.split()[0] for line in log.read_text().splitlines()] == ["test-one", "test-two", "test-one"]
    finally:
        blocks.unregister("test-one")
        blocks.unregister("test-two")


def test_a_key_covers_what_it_should():
    cell = cell_of("memory")
    given = {"versions": {"task memory": "1", "block plain": "1"}, "torch": "2.13.0+cpu"}
    keys = [
        cell_key(cell, **given),
        cell_key(cell.but(block_options={"gate_bias": -2}), **given),
        cell_key(cell.but(threads=2), **given),
        cell_key(cell, **given, ran=cell.but(recipe={"rate": 0.1})),
        cell_key(cell, **{**given, "torch": "2.14.0+cpu"}),
        cell_key(cell, **given, machine="cpu-x-2c"),
        cell_key(cell, **given, machine="cpu-y-2c"),
        cell_key(cell, **{**given, "versions": {"task memory": "1", "block plain": "2"}}),
        cell_key(cell, **given, refused=("skipped", "one reason")),
        cell_key(cell, **given, refused=("skipped", "another")),
    ]
    assert len(set(keys)) == len(keys)
    assert cell_key(cell.but(), **given) == keys[0]
    assert cell_key(cell, **{**given, "torch": "2.13.1+cu130"}) == keys[0]  # results outlive a patch and a build


def test_versions_are_those_of_all_that_a_cell_runs(monkeypatch):
    cell, tree = cell_of("throughput", block="highway", dataset="digits"), SourceTree()
    versions = versions_of(cell, tree)
    assert list(versions) == ["task throughput", "block highway", "family dense", "data set digits", "block plain"]
    assert {version for name, version in versions.items() if not name.startswith("task")} == {"1"}
    assert "architecture vgg" in versions_of(cell.but(task="cost", recipe={"layout": "vgg"}), tree)
    monkeypatch.setitem(blocks._entries, "highway", replace(blocks.get("highway"), version="2"))
    assert versions_of(cell, tree)["block highway"] == "2"


@pytest.fixture
def plan():
    """Two cells of this package, whose keys have versions only."""
    return Plan.of("smoke", Selection.of("cost", block=["plain", "highway"], family="dense", depth=2, width=8))


def test_rows_of_another_source_are_found_and_named(plan, store, tmp_path, monkeypatch):
    """A change of source that has no new version keeps every result; ``strict_source`` measures it again."""
    opened = []
    engine = InlineEngine(tmp_path)

    def measured(**options):
        def note(event):
            opened.extend([event] if isinstance(event, Opened) else [])

        return plan.run(store, engine=engine, on_event=note, **options).summary.measured

    cells = len(plan.cells)
    assert measured() == cells
    digest = SourceTree.digest
    monkeypatch.setattr(SourceTree, "digest", lambda tree, modules, **how: digest(tree, modules, **how)[::-1])
    assert measured() == 0
    assert plan.estimate(store, strict_source=True).stored == 0
    assert measured(strict_source=True) == cells
    assert measured(strict_source=True) == 0
    assert [event.other_sources for event in opened] == [0, cells, 0, 0]


def test_rows_from_before_keys_are_found(plan, store, tmp_path, monkeypatch):
    """Rows of schema 4 have digests of sources. They get today's key, unless what they ran has a newer version."""
    engine = InlineEngine(tmp_path)
    plan.run(store, engine=engine)
    rows = store.rows()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("""UPDATE rows SET schema = ?, source = NULL, digest = 'old ' || digest""", [KEYED - 1])
        db.execute("""UPDATE runs SET provenance = replace(provenance, '"digests": ["', '"digests": ["old ')""")
    with Store(store.path, read_only=True) as reader:
        assert plan.estimate(reader).stored == len(plan.cells)
    monkeypatch.setitem(blocks._entries, "highway", replace(blocks.get("highway"), version="2"))
    assert plan.run(store, engine=engine).summary.measured == sum(cell.block == "highway" for cell in plan.cells)
    monkeypatch.undo()
    assert plan.run(store, engine=engine).summary.measured == 0
    again = {(row["digest"], row["metric"]): row for row in store.rows(block=["plain", "highway"])}
    for row in rows:
        found = again[row["digest"], row["metric"]]
        assert found == row | {"source": None, "old_digest": f"old {row['digest']}"}
    requested = {digest for record in store.runs().values() for digest in record["digests"]}
    assert {row["digest"] for row in rows} <= requested


def test_results_do_not_outlive_torchs_minor_version(
    run,
    cell,
    elsewhere,
    monkeypatch,
):
    measured = []
    for version in ("2.13.0+cpu", "2.13.1+cu130", "2.14.0+cpu"):
        here = Identity("cpu-a-1c", None, version)
        monkeypatch.setattr(schedule, "identity", lambda device, here=here: here)
        measured.append(run([cell()], engine=elsewhere(here)).measured)
    assert measured == [1, 0, 1]


# ------------------------------------------------------------------------------------- data of the user's own

SHEEP = "".join(f"{number} sheep\n" for number in range(200))
LABELS = """
import torch
from dataclasses import dataclass
from pathlib import Path
from highway_bench.data import Data, DataSet, Split, register_dataset

@register_dataset("read-from-a-file", summary="labels in a file", source="a test")
@dataclass(frozen=True)
class Labels(DataSet):
    file: str
    input_kind, target_kind, input_shape, outputs, chance_loss = "image", "class", (1, 1, 2), 2, 0.5

    def load(self, *, seed=0):
        labels = torch.tensor(list(map(int, Path(self.file).read_text())))
        part = Split(torch.zeros(len(labels), 1, 1, 2), labels)
        return Data(part, part)
"""


def key_of(store, dataset, family, **options):
    recipe = {"steps": 2, "rate": 0.1, "dataset": options}
    planned = Schedule(store)
    planned.add({cell_of("trainability", family=family, recipe=recipe, dataset=dataset): ()})
    (item,) = planned.ready()
    return item.digest


def test_a_text_that_is_replaced_is_another_one(store, tmp_path):
    text, moved = tmp_path / "text.txt", tmp_path / "moved.txt"
    text.write_text(SHEEP)
    before = key_of(store, "language", "bilstm", path=str(text))
    text.rename(moved)
    assert key_of(store, "language", "bilstm", path=str(moved)) == before
    text.write_text(SHEEP.replace("sheep", "goats"))
    assert key_of(store, "language", "bilstm", path=str(text)) != before


def test_a_plug_ins_data_belong_to_what_it_reads(store, tmp_path):
    """Neither their name nor their source counts."""
    plug_in, labels = tmp_path / "labels_in_a_file.py", tmp_path / "labels"
    plug_in.write_text(LABELS)
    load_plugins([str(plug_in)])
    try:
        labels.write_text("0101010101")
        before = key_of(store, "read-from-a-file", "dense", file=str(labels))
        plug_in.write_text(f"{LABELS}\nUNUSED = 1\n")
        importlib.reload(sys.modules["labels_in_a_file"])
        assert key_of(store, "read-from-a-file", "dense", file=str(labels)) == before
        labels.write_text("1101010100")
        assert key_of(store, "read-from-a-file", "dense", file=str(labels)) != before
    finally:
        datasets.unregister("read-from-a-file")


# ---------------------------------------------------------------------------- a source edited after its import

LAYER = """
from torch import nn
DEPTH = 1

class Mixed(nn.Linear):
    def forward(self, x):
        return super().forward(x).tanh()

def make(width):
    return Mixed(width, width)
"""


@pytest.mark.parametrize(
    ("before", "after", "looked"),
    [
        ("tanh", "sigmoid", False),
        ("Mixed(width, width)", "nn.Linear(width, width)", False),
        ("DEPTH = 1", "DEPTH = 200", True),  # of a constant only a look before tells
    ],
)
def test_an_edit_after_the_import_is_refused_until_the_reload(write, before, after, looked):
    write("layers.py", LAYER)
    layers = importlib.import_module("layers")
    if looked:
        check_unedited(["layers"])
        write("layers.py", "# a comment\n" + LAYER)
        check_unedited(["layers"])
    write("layers.py", LAYER.replace(before, after))
    with pytest.raises(BadInput, match="reload it"):
        check_unedited(["layers"])
    plan = Plan.of("smoke", Selection.of("memory", family=family(layers.make), block="plain", width=8))
    with pytest.raises(BadInput, match="reload it"):
        plan.estimate()
    importlib.reload(layers)
    check_unedited(["layers"])
