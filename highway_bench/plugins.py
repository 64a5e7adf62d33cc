"""Plug-ins: modules that register blocks, families, tasks or data sets, by their name or by their file."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.data import datasets
from highway_bench.errors import BadInput
from highway_bench.families import families
from highway_bench.registry import load_plugin
from highway_bench.tasks import tasks

PACKAGE = __name__.partition(".")[0]


def load_plugins(plugins: Sequence[str]) -> tuple[str, ...]:
    """Import ``plugins`` and give their module names, by which worker processes import them too.

    A plug-in is a module's name, or the path of a ``.py`` file, whose folder is then put on ``sys.path`` (workers get
    this process's). Raises ``BadInput`` for one that is not there, cannot be imported, or registers a taken name.
    """
    return tuple(_loaded(plugin) for plugin in plugins)


def _loaded(plugin: str) -> str:
    if not plugin.endswith(".py"):
        load_plugin(plugin)
        return plugin
    path = Path(plugin).expanduser().absolute()
    module = path.stem
    if not os.path.isfile(path):  # answers no for a name that is too long, where Path.is_file raises
        raise BadInput(f"plug-in {plugin!r}: there is no such file")
    if not module.isidentifier():
        raise BadInput(f"plug-in {plugin!r}: {module!r} is no module name; use letters, digits and '_'")
    make_importable(path.parent)
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not path.samefile(spec.origin):
        raise BadInput(f"plug-in {plugin!r}: another module is called {module!r} already; rename the file")
    load_plugin(module)
    return module


def make_importable(folder: Path) -> None:
    """Put ``folder`` on ``sys.path``, here and so in the worker processes that are started from here."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    importlib.invalidate_caches()  # a file written a moment ago counts


def modules_outside(cells: Iterable[Cell]) -> tuple[str, ...]:
    """Modules outside this package that register what ``cells`` name, so that workers can import them.

    Raises ``BadInput`` for an entry that is defined in ``__main__``: in a notebook, or in the script that was started.
    """
    found: dict[str, None] = {}
    for cell in cells:
        for registry, name in (
            (tasks, cell.task),
            (blocks, cell.block),
            (families, cell.family),
            (datasets, cell.dataset),
        ):
            if name is None or ":" in name:  # module:factory is imported by its own name
                continue
            place = registry.place(name)
            if place == "__main__":
                raise BadInput(
                    f"{registry.kind} {name!r} is defined in __main__, where no worker process finds it: "
                    f"put it into a module of its own"
                )
            if place.partition(".")[0] != PACKAGE:
                found[place] = None
    return tuple(found)
