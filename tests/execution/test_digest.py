"""A digest depends on the source that a cell runs through, and on nothing else."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from highway_bench.execution.digest import cell_digest, modules_of
from highway_bench.execution.module_source import find_source
from highway_bench.execution.source_code import Code, code_of
from highway_bench.execution.source_tree import NOT_MEASURED, SourceTree

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution import schedule
from highway_bench.execution.runner import run_cells
from highway_bench.provenance import Identity
from highway_bench.results import Store

WriteFile = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WriteFile]:
    """Writes a module into a folder on the import path."""
    root = tmp_path / "plugins"
    root.mkdir()
    monkeypatch.syspath_prepend(str(root))
    loaded = set(sys.modules)

    def to(name: str, text: str) -> Path:
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    yield to
    for name in set(sys.modules) - loaded:
        if name.partition(".")[0] in {"gates", "layers", "beside"}:
            del sys.modules[name]


def test_same_meaning_same_digest(write: WriteFile) -> None:
    write(
        "layers.py",
        """
        def double(x):
            return 2 * x
    """,
    )
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
    write(
        "layers.py",
        """
        def double(x):
            return 3 * x
    """,
    )
    assert SourceTree().digest(["layers"]) != before


def test_what_only_a_compiled_step_runs_counts_for_compiled_cells() -> None:
    def code(compiled: str, module: str = "highway_bench.blocks.double") -> Code:
        return code_of(f"import torch\ndef double(x):\n    {compiled}\n    return 2 * x\n".encode(), module, False)

    without, branch = code(""), code("if torch.compiler.is_compiling(): return x + x")
    assert without.eager == without.meaning == branch.eager
    assert branch.meaning != without.meaning
    other = code("if not torch.compiler.is_compiling(): return x + x")
    assert other.eager == other.meaning != without.meaning
    plugin = code("if torch.compiler.is_compiling(): return x + x", "layers")
    assert plugin.eager == plugin.meaning  # which may compile itself in an eager cell


def test_the_digest_of_highway_covers_its_compiled_gate_where_that_runs() -> None:
    tree = SourceTree()
    modules = ["highway_bench.blocks.highway"]
    assert tree.digest(modules) != tree.digest(modules, compiled=True)
    assert tree.digest(["highway_bench.blocks.plain"]) == tree.digest(["highway_bench.blocks.plain"], compiled=True)


def without_measurement(closure: set[str]) -> set[str]:
    """The modules of ``closure`` that no digest may cover."""
    return {name for name in closure for one in NOT_MEASURED if name == one or name.startswith(f"{one}.")}


def test_closure_follows_the_plugins_own_modules(write: WriteFile) -> None:
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
        from highway_bench.results import Store
        from highway_bench.plan.selection import Selection
        from highway_bench.block_check import check_block
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
    assert not without_measurement(closure)
    assert "gates.later" not in sys.modules  # in the closure, not imported


def test_every_module_that_measures_nothing_exists() -> None:
    assert [name for name in NOT_MEASURED if find_source(name) is None] == []


def test_own_package() -> None:
    cell = Cell(
        task="trainability", block="highway", family="dense", depth=1, width=8, nominal_width=8, dataset="digits"
    )
    modules, variant = modules_of(cell)
    assert modules == [
        "highway_bench.tasks.trainability",
        "highway_bench.blocks.highway",
        "highway_bench.families.dense",
        "highway_bench.data.digits",
    ]
    assert variant == "{}"
    closure = SourceTree().closure(modules)
    assert {"highway_bench.network", "highway_bench.blocks.base", "highway_bench.families.base"} <= closure
    assert not closure & {
        "highway_bench.blocks.residual",
        "highway_bench.families.conv",
        "highway_bench.data.mnist_5k",
        "highway_bench.tasks.throughput",
        "highway_bench.cell",
        "highway_bench.registry",
    }
    assert not without_measurement(closure)


@pytest.mark.parametrize("task", ["throughput", "memory"])
def test_a_timed_stack_depends_on_no_architecture_and_no_estimate(task: str) -> None:
    cell = Cell(task=task, block="highway", family="dense", depth=1, width=8, nominal_width=8, phase="forward")
    closure = SourceTree().closure(modules_of(cell)[0])
    assert "highway_bench.tasks.modes" in closure
    assert not any("architecture" in name for name in closure)
    assert "highway_bench.training.loop" not in closure  # the update alone is training's
    assert ("highway_bench.blocks.plain" in closure) == (task == "throughput")  # timed next to it
    assert "highway_bench.tasks.network_bytes" not in closure


def test_an_architecture_counts_where_the_recipe_names_it() -> None:
    cell = Cell(task="cost", block="plain", family="conv", depth=12, width=8, nominal_width=8)
    assert "highway_bench.architectures.vgg" not in SourceTree().closure(modules_of(cell)[0])
    named = cell.but(recipe={"layout": "vgg"})
    assert "highway_bench.architectures.vgg" in SourceTree().closure(modules_of(named)[0])


def test_what_is_only_printed_does_not_count(write: WriteFile) -> None:
    def digest(text: str) -> str:
        write("layers.py", text)
        return SourceTree().digest(["layers"])

    lines = (
        'one = Metric("loss", "nat", label="loss")',
        'word = POSITIVE.meaning("A rate.")',
        '@register_block("joined", gates=1, summary="A")\nclass Joined: ...',
        "plot(label=1)",
    )
    reworded = (
        'one = Metric("loss", "nat", hint="mean")',
        'word = POSITIVE.meaning("Another.")',
        '@register_block("joined", gates=1, summary="B", source="C")\nclass Joined: ...',
        "plot(label=1)",
    )
    changed = (
        'one = Metric("loss", "B")',
        'word = NOT_NEGATIVE.meaning("A rate.")',
        '@register_block("joined", gates=2)\nclass Joined: ...',
        "plot(label=2)",
    )
    before = digest("\n".join(lines))
    assert digest("\n".join(reworded)) == before
    for index, line in enumerate(changed):
        assert digest("\n".join([*lines[:index], line, *lines[index + 1 :]])) != before, line


def test_factory_starts_at_its_module() -> None:
    cell = Cell(task="memory", block="plain", family="layers:make", depth=1, width=8, nominal_width=8)
    assert modules_of(cell)[0][2] == "layers"


def test_module_without_source(write: WriteFile) -> None:
    with pytest.raises(BadInput, match="module 'absent' has no source file"):
        SourceTree().digest(["absent"])
    write("layers.py", "def broken(:")
    with pytest.raises(BadInput, match=r"module 'layers' is no valid Python: .*line 1"):
        SourceTree().digest(["layers"])


def test_digest_covers_what_it_should() -> None:
    cell = Cell(task="memory", block="plain", family="dense", depth=1, width=8, nominal_width=8)
    given = {"sources": "s", "task_version": "1", "torch": "2.13.0+cpu"}
    meter = {"sources": "s", "task_version": "1", "machine": "cpu-x-2c"}
    digests = [
        cell_digest(cell, **given),
        cell_digest(cell.but(block_options={"gate_bias": -2}), **given),
        cell_digest(cell.but(threads=2), **given),
        cell_digest(cell, **given, ran=cell.but(recipe={"rate": 0.1})),
        cell_digest(cell, **{**given, "torch": "2.14.0+cpu"}),
        cell_digest(cell, **meter, torch="2.13.0"),
        cell_digest(cell, **{**meter, "machine": "cpu-y-2c"}, torch="2.13.0"),
        cell_digest(cell, **meter, torch="2.13.1"),
        cell_digest(cell, **{**given, "sources": "t"}),
        cell_digest(cell, **{**given, "task_version": "2"}),
        cell_digest(cell, **given, refused=("skipped", "one reason")),
        cell_digest(cell, **given, refused=("skipped", "another")),
    ]
    assert len(set(digests)) == len(digests)
    assert cell_digest(cell.but(), **given) == digests[0]
    assert cell_digest(cell, **{**given, "torch": "2.13.1+cu130"}) == digests[0]  # losses outlive a patch and a build


BLOCK = """
    from highway_bench.blocks import Block, register_block

    @register_block("{name}", equation="y = x", source="none", summary="for a test")
    class Joined(Block):
        factor = {factor}{remark}
"""


def test_a_changed_block_is_measured_again_and_no_other(
    write: WriteFile, fakes: str, store: Store, log: Path, cell: Callable[..., Cell]
) -> None:
    def block(name: str, factor: int, remark: str = "") -> None:
        write(f"gates/{name}.py", BLOCK.format(name=f"test-{name}", factor=factor, remark=remark))

    write("gates/__init__.py", "")
    block("one", 1)
    block("two", 1)
    cells = [cell(block="test-one"), cell(block="test-two")]
    try:
        for name in ("one", "two"):
            importlib.import_module(f"gates.{name}")
        assert run_cells(cells, store, plugins=[fakes]).measured == 2
        block("one", 1, remark="  # a remark")
        assert run_cells(cells, store, plugins=[fakes]).measured == 0
        block("one", 2)
        summary = run_cells(cells, store, plugins=[fakes])
        assert (summary.measured, summary.stored) == (1, 1)
        *first, last = [line.split()[0] for line in log.read_text().splitlines()]
        assert (sorted(first), last) == (["test-one", "test-two"], "test-one")  # the first two ran side by side
    finally:
        blocks.unregister("test-one")
        blocks.unregister("test-two")


def test_losses_do_not_outlive_torchs_minor_version(
    fakes: str,
    store: Store,
    cell: Callable[..., Cell],
    elsewhere: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = []
    for version in ("2.13.0+cpu", "2.13.1+cu130", "2.14.0+cpu"):
        here = Identity("cpu-a-1c", None, version)
        monkeypatch.setattr(schedule, "identity", lambda device, here=here: here)
        measured.append(run_cells([cell()], store, plugins=[fakes], engine=elsewhere(here)).measured)
    assert measured == [1, 0, 1]
