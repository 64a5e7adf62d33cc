"""Digest: a hash of all that a cell's result depends on, so that a store knows which results are still valid.

A digest covers the cell, the version of its task, and the source of the modules it runs through: those that define
its block, family, task and data set, and what these import in turn (see ``source_tree``). torch's minor version counts
for every cell; for a meter (a task whose values depend on the hardware) its whole version and the machine do. The
thread count is in every cell.
"""

from __future__ import annotations

import json

from highway_bench.cell import Cell, canonical
from highway_bench.execution.source_code import hash_of


def cell_digest(
    cell: Cell,
    *,
    sources: str,
    task_version: str,
    torch: str,
    ran: Cell | None = None,
    machine: str | None = None,
    refused: tuple[str, str] | None = None,
) -> str:
    """The digest of ``cell``: 32 hexadecimal digits.

    ``sources`` is a ``SourceTree.digest``. ``ran`` is the cell that is run for it, where other cells' results decide
    that (the winner of a search): a new winner gives a new digest. ``refused`` is the status and the reason of a cell
    that cannot be run; without it the digest is another. ``torch`` is torch's version. It counts in full for a meter
    (which has a ``machine``), with its first two numbers for any other task.
    """
    if machine is None:
        torch = ".".join(torch.split(".")[:2])
    parts = [cell.key, ran.key if ran is not None else None, task_version, sources, machine, torch]
    return hash_of(json.dumps([*parts, *([refused] if refused is not None else [])]))


def modules_of(cell: Cell) -> tuple[list[str], str]:
    """The modules that define what ``cell`` runs (task, block, family, data set, architecture), and its block's variant
    options.

    A family or a data set given as ``module:factory`` is defined in that module. Raises ``UnknownName``.
    """
    from highway_bench.blocks import blocks
    from highway_bench.plugins import entries_of  # which imports torch

    modules = [
        name.partition(":")[0] if ":" in name else registry.module_of(name) for registry, name in entries_of(cell)
    ]
    return modules, canonical(blocks.get(cell.block).options)
