"""Plug-ins: by name and by file, and what workers must import."""

import sys

import pytest

from highway_bench.blocks import Block, blocks, register_block
from highway_bench.errors import BadInput
from highway_bench.plugins import load_plugins, modules_outside
from highway_bench.scaffold import block_text
from tests.inline_engine import cell_of

CELL = cell_of("memory")


@pytest.fixture
def gate(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    path = tmp_path / "plugin_gate.py"
    path.write_text(block_text("plugin-gate"))
    yield path
    blocks.unregister("plugin-gate")
    sys.modules.pop("plugin_gate", None)


def test_file(gate):
    assert load_plugins([str(gate)]) == ("plugin_gate",)
    assert "plugin-gate" in blocks
    assert load_plugins([str(gate), "plugin_gate"]) == ("plugin_gate", "plugin_gate")  # once is enough


def test_what_workers_import(gate):
    load_plugins([str(gate)])
    cells = [
        CELL,
        CELL.but(family="my_layers:make", dataset="digits"),
        CELL.but(block="plugin-gate"),
        CELL.but(block="plugin-gate", depth=2),
    ]
    assert modules_outside(cells) == ("plugin_gate",)


def test_block_of_a_notebook():
    """Its class travels by value; the cell run again replaces it."""

    def register(power):
        class InMain(Block):
            factor = power

        InMain.__module__ = "__main__"
        register_block("in-main", equation="y = x", source="", summary="")(InMain)
        (plugin,) = modules_outside([CELL.but(block="in-main")])
        assert plugin == modules_outside([CELL.but(block="in-main", depth=2)])[0]
        return plugin

    try:
        assert register(1) != register(2)
    finally:
        blocks.unregister("in-main")


@pytest.mark.parametrize("wrong", ["gates=-5", "norms=1.5"])
def test_a_wrong_count_is_refused(gate, wrong):
    """With a negative number of gates no width has plain's parameters, and a search for it would not end."""
    gate.write_text(gate.read_text().replace("gates=1", wrong))
    name = wrong.partition("=")[0]
    with pytest.raises(BadInput, match=name):
        load_plugins([str(gate)])
