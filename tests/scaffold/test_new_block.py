"""A new block's file: names that are refused, where it goes, and that it is clean unchanged."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from highway_bench import scaffold
from highway_bench.blocks import blocks
from highway_bench.declared import declared_in
from highway_bench.errors import BadInput

ROOT = Path(__file__).parents[2]


def test_file(tmp_path):
    written = scaffold.new_block("my-gate", tmp_path)
    assert written == scaffold.NewBlock("my-gate", tmp_path / "my_gate.py", in_tree=False)
    (about,) = declared_in([written.path])
    assert about["gates"] == 1
    assert {"equation", "source", "summary"} <= about.keys()
    tree = ast.parse(written.path.read_text(encoding="utf-8"))
    assert [node.name for node in tree.body if isinstance(node, ast.ClassDef)] == ["MyGate"]
    assert written.path.read_text(encoding="utf-8").count("edit this line") == 1


@pytest.mark.parametrize("name", ["My-gate", "my_gate", "2gates", "", "-gate", "class", "../gate", "my gate"])
def test_bad_name(name, tmp_path):
    with pytest.raises(BadInput, match="name"):
        scaffold.new_block(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", blocks.names())
def test_taken_name(name, tmp_path):
    with pytest.raises(BadInput, match="already"):
        scaffold.new_block(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("random", "'random'"),  # the file would stand in for Python's own
        ("my-gate", "exists already"),
        ("a" * 300, "too long"),
    ],
    ids=["module", "file", "long"],
)
def test_a_file_that_cannot_be(name, says, tmp_path):
    (tmp_path / "my_gate.py").write_text("mine")
    with pytest.raises(BadInput, match=says):
        scaffold.new_block(name, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for missing in (tmp_path / "file", tmp_path / "no-such-folder"):
        with pytest.raises(BadInput, match="there is no folder"):
            scaffold.new_block("my-gate", missing)
    assert not (tmp_path / "no-such-folder").exists()


def test_checkout_or_plugin(tmp_path, monkeypatch):
    """In its source checkout the file goes among the package's blocks, elsewhere into the working directory."""
    checkout = tmp_path / "checkout"
    home = checkout / "highway_bench" / "blocks"
    home.mkdir(parents=True)
    (checkout / "pyproject.toml").write_text('[project]\nname = "highway-bench"\n')
    monkeypatch.setattr(scaffold, "BLOCKS", home)
    monkeypatch.chdir(checkout / "highway_bench")
    assert scaffold.new_block("my-gate") == scaffold.NewBlock("my-gate", home / "my_gate.py", in_tree=True)
    monkeypatch.chdir(tmp_path)
    assert scaffold.new_block("your-gate") == scaffold.NewBlock("your-gate", tmp_path / "your_gate.py", in_tree=False)
    with pytest.raises(BadInput, match="already"):
        scaffold.new_block("my-gate")


def test_lint():
    ruff = shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    done = subprocess.run(
        [ruff, "check", "--stdin-filename", "highway_bench/blocks/a_gate.py", "-"],
        cwd=ROOT,
        input=scaffold.block_text("a-gate"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
