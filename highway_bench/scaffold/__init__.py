"""Scaffold: writes the file of a new block. The file works unchanged and has one equation to edit. Imports no torch."""

from __future__ import annotations

import importlib.util
import keyword
import os
import tomllib
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

from highway_bench.declared import declared_in
from highway_bench.errors import BadInput, writing
from highway_bench.registry import NAME

BLOCKS = Path(__file__).resolve().parent.parent / "blocks"
PROJECT = "highway-bench"


@dataclass(frozen=True)
class NewBlock:
    """The written file. With ``in_tree`` it is part of the package, otherwise a plug-in."""

    name: str
    path: Path
    in_tree: bool


def new_block(name: str, folder: str | os.PathLike[str] | None = None) -> NewBlock:
    """Write the file of a block called ``name`` into ``folder``.

    Without ``folder``, the file goes into the package's own blocks if the working directory is in its source checkout,
    else into the working directory. Raises ``BadInput`` for a bad or a taken name, a file that exists, or a folder that
    cannot be written.
    """
    module = name.replace("-", "_")
    if not NAME.match(name) or keyword.iskeyword(module):
        raise BadInput(f"{name!r} is no name for a block: use lower-case words joined by '-', as in 'my-gate'")
    if name in taken_names():
        raise BadInput(f"there is a block called {name!r} already; choose another name")
    target = Path(folder) if folder is not None else BLOCKS if in_checkout(Path.cwd()) else Path.cwd()
    in_tree = target.resolve() == BLOCKS
    path = target / f"{module}.py"
    with writing(path):
        if path.exists():
            raise BadInput(f"{path} exists already; nothing was written")
        if not in_tree and importlib.util.find_spec(module) is not None:
            raise BadInput(
                f"a Python module is called {module!r} already, so a plug-in cannot have that name; choose another"
            )
        if not target.is_dir():
            raise BadInput(f"there is no folder {target}; nothing was written")
        path.write_text(block_text(name), encoding="utf-8")
    return NewBlock(name, path, in_tree)


def block_text(name: str) -> str:
    """The source of a new block's file."""
    template = files(__name__).joinpath("block.py.txt").read_text(encoding="utf-8")
    class_name = "".join(word.capitalize() for word in name.split("-"))
    return template.replace("{name}", name).replace("{class_name}", class_name)


def taken_names() -> set[str]:
    """Names of the package's blocks and of blocks in entry points, read without importing them."""
    own = [block["name"] for block in declared_in(BLOCKS.glob("*.py"))]
    return {*own, *(point.name for point in entry_points(group="highway_bench.blocks"))}


def in_checkout(folder: Path) -> bool:
    """Whether ``folder`` is in the source checkout that this package runs from."""
    root = BLOCKS.parent.parent
    project = root / "pyproject.toml"
    if not project.is_file() or not folder.resolve().is_relative_to(root):
        return False
    return bool(tomllib.loads(project.read_text(encoding="utf-8")).get("project", {}).get("name") == PROJECT)
