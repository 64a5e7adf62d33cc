"""Bring in results that were measured elsewhere: on a GPU box without git, or by someone else."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.files import (
    MACHINE,
    copy_file,
    machine_folders,
    read_machine,
    read_result,
    result_paths,
    write_json,
)
from highway_bench.history.git import check_whole, commit_of, date_of, line_of
from highway_bench.history.layout import Layout
from highway_bench.history.machine import check_clash

NO_COMMIT = "0" * 40


@dataclass
class Imported:
    """The files written, and what is to be said of the others."""

    written: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def import_results(layout: Layout, folder: Path, commit: str | None = None) -> Imported:
    """Record the results in ``folder``, which is of one machine, or holds such folders.

    ``commit`` is what was measured, where the files themselves do not know: it takes the place of the commit in all of
    them, which must then be one a machine. Everything is checked before anything is written, and a point that is
    recorded already with other values is an error: nothing recorded is overwritten.
    """
    check_whole(layout.root)
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder")
    sources = [folder] if result_paths(folder) or (folder / MACHINE).is_file() else machine_folders(folder)
    full = commit_of(layout.root, commit) if commit else None
    ready: dict[Path, tuple[Path, dict[str, Any]]] = {}  # by target: where it came from, and what is to be written
    imported = Imported()
    on_line = set(line_of(layout.root))
    for source in sources:
        paths = result_paths(source)
        # The folder may have been renamed on its way here; the entry's own name counts.
        machine = read_machine(source, renamed=source == folder)
        check_clash(machine, layout.recorded, layout.results)
        if full and len(paths) > 1:
            raise BadInput(f"{source} has {len(paths)} result files: --commit can name the commit of one only")
        for path in paths:
            data = checked_result(layout.root, path, str(machine["machine"]), full)
            known = data["commit_hash"]
            name = f"{known[:8]} of machine {machine['machine']!r}"
            target = layout.recorded / str(machine["machine"]) / f"{known[:8]}-{data['env_name']}.json"
            if target in ready:
                raise BadInput(f"{source} has two files for {name}")
            if not target.exists():
                ready[target] = source, data
            elif read_result(target).data == data:
                imported.lines.append(f"{name} is recorded already, with these values")
            else:
                raise BadInput(f"{name} is recorded already, with other values; remove "
                               f"{target.relative_to(layout.root)} first if these are to count")
            if known not in on_line:
                imported.lines.append(f"{name} is not on HEAD's first-parent line: the pages leave it out")
    if not ready and not imported.lines:
        raise NothingMeasured(f"{folder} has no result files")
    for target, (source, data) in ready.items():
        write_json(target, data)
        copy_file(source / MACHINE, target.parent / MACHINE)
        imported.written.append(target)
    return imported


def checked_result(root: Path, path: Path, machine: str, full: str | None) -> dict[str, Any]:
    """A result file's data under the commit ``full``, or else its own; raises for a file that is not ``machine``'s, has
    no value, or knows no commit."""
    result = read_result(path)
    if result.machine != machine:
        raise BadInput(f"{path} is of machine {result.machine!r}, its folder of {machine!r}")
    if not result.points:
        raise NothingMeasured(f"{path} has no value at all")
    if result.commit == NO_COMMIT and not full:
        raise BadInput(f"{path} does not know its commit: give it with --commit")
    if Path(str(result.data["env_name"])).name != result.data["env_name"]:
        raise BadInput(f"{path} has the environment name {result.data['env_name']!r}, which is no file's name")
    known = full or commit_of(root, result.commit)
    return result.data | {"commit_hash": known, "date": date_of(root, known)}
