"""Key: a hash of all that decides a cell's result, under which a store keeps its rows.

A key covers the cell, the versions of its task, block, family, data set and architecture, and torch's minor version;
for a meter (a task whose values depend on the hardware) the machine too. The thread count is in every cell. People
raise a version when a number changes. So other changes of the source keep every result; ``tests/sources.json`` has the
source that belongs to each version. Nobody raises versions of users' modules, so their source itself is in the key; of
users' data, a hash of the items is, and neither their name nor their source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from highway_bench.by_value import is_module, named_value, value_of
from highway_bench.cell import Cell
from highway_bench.execution.edited import check_unedited
from highway_bench.registry import FIRST_VERSION, Registry
from highway_bench.source import SourceTree, hash_of, is_ours


def cell_key(
    cell: Cell,
    *,
    versions: Mapping[str, str],
    torch: str,
    ran: Cell | None = None,
    machine: str | None = None,
    refused: tuple[str, str] | None = None,
) -> str:
    """The key of ``cell``: 32 hexadecimal digits.

    ``versions`` are those of ``versions_of``. ``ran`` is the cell that is run for it, where other cells' results decide
    that (the winner of a search): a new winner gives a new key. ``machine`` is that of a meter. ``refused`` is the
    status and the reason of a cell that cannot be run; without it the key is another. ``torch`` is torch's version, of
    which the first two numbers count.
    """
    parts = [
        cell.key,
        ran.key if ran is not None else None,
        dict(sorted(versions.items())),
        minor(torch),
        machine,
        refused,
    ]
    return hash_of(json.dumps(parts).encode())


def users_items(cell: Cell) -> str | None:
    """A hash of the items of ``cell``'s data set where they are the user's, else ``None``. It reads them.

    Raises ``BadInput`` where they cannot be read.
    """
    from highway_bench.data import datasets, fingerprint  # which import torch
    from highway_bench.tasks.from_cell import cell_dataset

    if cell.dataset is None:
        return None
    dataset, ours = cell_dataset(cell), is_ours(datasets.module_of(cell.dataset))
    if dataset is None or (ours and not dataset.is_users) or dataset.missing() is not None:
        return None
    return fingerprint(dataset)


def with_items(cell: Cell, items: str | None) -> Cell:
    """``cell`` with the hash of the user's ``items`` for its data set's name and options."""
    if items is None:
        return cell
    recipe = {word: value for word, value in cell.recipe.items() if word != "dataset"}
    return cell.but(dataset=f"items {items}", recipe=recipe)


def versions_of(cell: Cell, tree: SourceTree) -> dict[str, str]:
    """What ``cell`` runs (``task throughput``, ``block highway``, …), each with its version; of a user's module, the
    hash of its source.

    What no module defines has its key by value. Raises ``UnknownName`` for an entry that no registry has, and
    ``BadInput`` for a user's module without a file, or one that was edited after it was imported.
    """
    from highway_bench.plugins import entries_of  # which imports torch

    versions = {}
    for registry, name in entries_of(cell):
        modules, key = defined_by(registry, name)
        if all(map(is_ours, modules)) and not key and ":" not in name:
            key = registry.version_of(name)
        else:
            check_unedited(tree.closure(modules))
        versions[f"{registry.kind} {name}"] = key or tree.digest(modules, own=True)
    return versions


def defined_by(registry: Registry[Any], name: str) -> tuple[list[str], str]:
    """The modules that define an entry of ``registry``, and its key by value where none does."""
    value = named_value(name)
    module = name.partition(":")[0] if ":" in name else registry.module_of(name)
    if value is None and ":" not in name and not (is_ours(module) or is_module(module)):
        value = value_of(registry.get(name), name)
    if value is not None:
        return sorted(value.modules), value.key
    return [module], ""


def is_first(versions: Mapping[str, str]) -> bool:
    """Whether all that a cell runs, apart from its task, has its first version."""
    return all(version == FIRST_VERSION for name, version in versions.items() if not name.startswith("task "))


def minor(version: str) -> str:
    """The first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def modules_of(cell: Cell) -> list[str]:
    """The modules that define what ``cell`` runs, and those of the user's that a notebook's definitions reach.

    A family or a data set given as ``module:factory`` is defined in that module. Raises ``UnknownName``.
    """
    from highway_bench.plugins import entries_of  # which imports torch

    return [module for registry, name in entries_of(cell) for module in defined_by(registry, name)[0]]
