"""Key: a hash of all that decides a cell's result, under which a store keeps its rows; and the keys of older rows.

A key covers the cell, the versions of its task, block, family, data set and architecture, and torch's minor version;
for a meter (a task whose values depend on the hardware) the machine too. The thread count is in every cell. People
raise a version when a number changes. So other changes of the source keep every result; ``tests/sources.json`` has the
source that belongs to each version. Nobody raises versions of users' modules, so their source itself is in the key; of
users' data, a hash of the items is, and neither their name nor their source. A user's file that was edited after this
process imported it is refused: workers would import it as it is now.

Until schema 4 a digest was of the source itself, so every change of source made rows unknown. Such rows are found by
their columns: the cell, the version of its task, torch's minor version, and the machine of a meter. All else that they
ran had its first version, so they are results of today's cell where that runs first versions.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from highway_bench.by_value import is_module, named_value, value_of
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.provenance import identity
from highway_bench.provenance.former_names import machine_of
from highway_bench.registry import FIRST_VERSION, Registry
from highway_bench.results.schema import Status
from highway_bench.results.store import Store
from highway_bench.source import SourceTree, find_module, hash_of, is_ours

if TYPE_CHECKING:
    from highway_bench.execution.schedule import ScheduledCell

_seen: dict[str, tuple[object, str]] = {}  # by module: its spec, which a reload replaces, and a hash of its code


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
        cell.identity,
        ran.identity if ran is not None else None,
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


def check_unedited(modules: Iterable[str]) -> None:
    """Raise ``BadInput`` for one of the user's ``modules`` that was edited after this process imported it.

    At the first look the code of its functions is compared with the file, then the whole file with that look.
    """
    for name in modules:
        module, file = sys.modules.get(name), find_module(name)
        if module is None or file is None or is_ours(name) or type(module.__loader__) is not SourceFileLoader:
            continue
        spec, meaning = _seen.get(name, (None, ""))
        is_same = meaning == file.meaning if module.__spec__ is spec else _runs(module, file.path.read_bytes())
        if not is_same:
            raise BadInput(
                f"module {name!r} was edited after it was imported: reload it (importlib.reload, or %autoreload 2 in a "
                f"notebook)"
            )
        _seen[name] = module.__spec__, file.meaning


def _runs(module: ModuleType, source: bytes) -> bool:
    """Whether the functions of ``module`` and the methods of its classes are those of ``source``."""
    path = str(module.__file__)
    whole = SourceFileLoader(module.__name__, path).source_to_code(source, path)
    written = {(code.co_qualname, *_shape(code)) for code in _codes(whole)}
    owners = [module, *(one for one in vars(module).values() if inspect.isclass(one))]
    functions = (inspect.unwrap(one) for owner in owners for one in vars(owner).values() if inspect.isfunction(one))
    codes = (one.__code__ for one in functions if inspect.isfunction(one) and one.__code__.co_filename == path)
    return all((code.co_qualname, *_shape(code)) in written for code in codes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """``code`` and all that is defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _shape(code: CodeType) -> tuple[Any, ...]:
    """What ``code`` does, on whatever lines of its file."""
    constants = ((type(one), _shape(one) if isinstance(one, CodeType) else one) for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)


class Stored(NamedTuple):
    """A cell with an old digest: the machine that measured it, by today's name, and its status with the message."""

    digest: str
    machine: str
    status: str
    message: str | None


class OldKeys:
    """The cells of ``store`` that have old digests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def adopt(self, items: Iterable[ScheduledCell]) -> dict[str, Status]:
        """Give the rows of ``items`` that have an old digest today's key; the status of each, by key.

        In a store that is only read, the item gets the old digest instead.
        """
        if not self._cells:
            return {}
        found = {item.digest: (item, old) for item in items if (old := self._found(item)) is not None}
        statuses = self._store.digests()
        ended = {}
        for key, (item, old) in found.items():
            item.digest = old.digest if self._store.read_only else key
            ended[item.digest] = statuses[old.digest]
        if not self._store.read_only:
            self._store.rekey({old.digest: (key, old.machine) for key, (_, old) in found.items()})
        return ended

    @cached_property
    def _cells(self) -> dict[tuple[str, str, str], list[Stored]]:
        """By cell, version of the task and torch's minor version: what the store has, oldest first."""
        cells: dict[tuple[str, str, str], list[Stored]] = {}
        rows = self._store.cells_before_keys()
        runs = self._store.runs() if rows else {}
        for row in rows:
            machine = machine_of(row["machine"], runs.get(row["run_id"], {}))
            what = Cell.of_columns(row).identity, row["task_version"], minor(row["torch"])
            cells.setdefault(what, []).append(Stored(row["digest"], machine, row["status"], row["message"]))
        return cells

    def _found(self, item: ScheduledCell) -> Stored | None:
        """The newest old result of ``item``."""
        if not is_first(item.versions):
            return None
        where = identity(item.cell.device)
        stored = self._cells.get((item.cell.identity, item.task.version, minor(where.torch)), [])
        return next((one for one in reversed(stored) if self._is_of(one, item, where.machine)), None)

    def _is_of(self, old: Stored, item: ScheduledCell, machine: str) -> bool:
        if item.task.meter and old.machine != machine:
            return False
        if item.refused is not None:  # the same refusal
            return (old.status, old.message) == item.refused
        if not item.needs:
            return True
        rate = self._store.scalars(old.digest).get("rate")  # of the winner of that time
        return old.status != Status.SKIPPED and rate in (None, item.ran.recipe.get("rate"))
