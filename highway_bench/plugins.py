"""Plug-ins: modules that register blocks, families, tasks or data sets, given by name or by file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from highway_bench.architectures import architectures
from highway_bench.blocks import BlockSpec, blocks
from highway_bench.cell import Cell
from highway_bench.data import datasets
from highway_bench.errors import BadInput
from highway_bench.families import families
from highway_bench.matching import baseline
from highway_bench.registry import Registry, load_plugin, module_of_file, modules_of
from highway_bench.tasks import tasks

PACKAGE = __name__.partition(".")[0]


def load_plugins(plugins: Sequence[str]) -> tuple[str, ...]:
    """Import ``plugins`` and return their module names, with which worker processes import them too.

    A plug-in is a module's name, or the path of a ``.py`` file, whose folder is then added to ``sys.path`` (workers
    inherit it). Raises ``BadInput`` for a plug-in that does not exist, cannot be imported, or registers a taken name or
    a block with a wrong number of gates or norms.
    """
    modules = tuple(_loaded(plugin) for plugin in plugins)
    for name in blocks.names() if modules else ():
        _check_counts(blocks.get(name))
    return modules


def _check_counts(spec: BlockSpec) -> None:
    """Refuse counts of gates or norms that are no whole numbers from 0 on: no width would have equal parameters."""
    counts: dict[str, object] = {"gates": spec.gates, "norms": spec.norms, "leave_norms": spec.leave_norms}
    for what, count in counts.items():
        if not isinstance(count, int) or count < 0:
            raise BadInput(f"block {spec.name!r}: {what} must be a whole number, 0 or more, and is {count!r}")


def _loaded(plugin: str) -> str:
    module = module_of_file(plugin) if plugin.endswith(".py") else plugin
    load_plugin(module)
    return module


def modules_outside(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The plug-ins from outside of this package that workers need for ``cells``.

    Raises ``BadInput`` for what a notebook defines and no worker can get.
    """
    entries = dict.fromkeys(entry for cell in cells for entry in entries_of(cell))
    return tuple(one for one in modules_of(entries) if one.partition(".")[0] != PACKAGE)


def entries_of(cell: Cell) -> list[tuple[Registry[Any], str]]:
    """What ``cell`` runs, each with its registry: its task, block, family, data set, architecture and loss, and the
    baseline where it is measured next to it."""
    loss = cell.recipe.get("loss")  # a task of the user's may have a word of this name with other values
    entries: list[tuple[Registry[Any], str | None]] = [
        (tasks, cell.task),
        (blocks, cell.block),
        (families, cell.family),
        (datasets, cell.dataset),
        (architectures, cell.recipe.get("layout")),
        (datasets, loss if isinstance(loss, str) else None),  # module:function, like a data set of the user's
        (blocks, baseline().name if tasks.get(cell.task).with_baseline else None),
    ]
    return [(registry, name) for registry, name in entries if name is not None]
