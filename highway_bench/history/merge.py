"""Merge the committed history into asv's working folder. This comes before every measurement and every page."""

from __future__ import annotations

import itertools
from pathlib import Path

from highway_bench.history.combine import combined
from highway_bench.history.files import (
    MACHINE,
    MACHINE_VERSION,
    CutShort,
    Result,
    copy_file,
    machine_folders,
    read_machine,
    read_result,
    result_paths,
    write_json,
    write_text,
)
from highway_bench.history.machine import check_clash
from highway_bench.history.paths import Paths
from highway_bench.history.working_folder import exclusive


@exclusive
def merge_recorded(paths: Paths) -> list[str]:
    """Merge recorded results into the working folder; the newest row of each benchmark counts.

    Working copies of points that are no longer recorded are moved out. Returns a line for these, and for each working
    file that a killed run cut short. Raises ``BadInput``, and changes nothing, if a *recorded* file is broken (git can
    restore it) or any file is of a newer schema.
    """
    recorded = [
        (folder, read_machine(folder), [read_result(path) for path in result_paths(folder)])
        for folder in machine_folders(paths.recorded)
    ]
    working, broken = read_working(paths.results)
    for folder, machine, _ in recorded:
        if paths.results / folder.name / MACHINE not in broken:
            check_clash(machine, paths.results)
    lines = [*repair(working, broken), *_withdraw(paths)]
    for folder, _, results in recorded:
        target = paths.results / folder.name
        copy_file(folder / MACHINE, target / MACHINE)
        for result in results:
            there = working.get(target / result.path.name)
            if there is None:
                copy_file(result.path, target / result.path.name)
            elif (both := combined(there, result)) is not there:
                write_json(there.path, both.data)
    note_recorded(paths)
    return lines


def read_working(folder: Path) -> tuple[dict[Path, Result], dict[Path, str]]:
    """The results in a working folder by path, and the reasons for files there that a killed run cut short, by path.
    A machine's missing entry counts as such a file."""
    results: dict[Path, Result] = {}
    broken: dict[Path, str] = {}
    for machine in machine_folders(folder):
        for path in (machine / MACHINE, *result_paths(machine)):
            try:
                if path.name != MACHINE:
                    results[path] = read_result(path)
                elif path.is_file():
                    read_machine(machine)
                else:
                    broken[path] = f"{path} is missing"
            except CutShort as error:
                broken[path] = str(error)
    return results, broken


def repair(results: dict[Path, Result], broken: dict[Path, str]) -> list[str]:
    """Remove working results that were cut short, and rebuild a machine's entry from its results, which all contain it.
    Returns a line for each."""
    lines = []
    for path, reason in broken.items():
        path.unlink(missing_ok=True)
        neighbour = next((result for result in results.values() if result.path.parent == path.parent), None)
        if path.name == MACHINE and neighbour is not None:
            others = {"python", *neighbour.data.get("requirements", {})}
            entry = {name: value for name, value in neighbour.data["params"].items() if name not in others}
            write_json(path, entry | {"version": MACHINE_VERSION})
            lines.append(f"rebuilt from the results in its folder: {reason}")
        else:
            lines.append(f"removed; measure it again unless it is recorded: {reason}")
    return lines


def note_recorded(paths: Paths) -> None:
    """List the recorded results in ``paths.merged``; each has a copy in the working folder."""
    names = [
        path.relative_to(paths.recorded) for folder in machine_folders(paths.recorded) for path in result_paths(folder)
    ]
    write_text(paths.merged, "".join(f"{name}\n" for name in names))


def _withdraw(paths: Paths) -> list[str]:
    """Move out working results whose recorded copy was removed: the point was withdrawn, and must not return.

    A machine's entry is removed with its last result, since the entry itself may have been wrong.
    """
    before = paths.merged.read_text(encoding="utf-8").splitlines() if paths.merged.is_file() else []
    withdrawn = [name for name in before if (paths.results / name).is_file() and not (paths.recorded / name).is_file()]
    for name in withdrawn:
        source, target = paths.results / name, paths.withdrawn / name
        target.parent.mkdir(parents=True, exist_ok=True)
        number = itertools.count(1)
        while target.exists():  # withdrawn once before
            target = (paths.withdrawn / name).with_suffix(f".{next(number)}.json")
        source.replace(target)
        if not result_paths(source.parent):
            (source.parent / MACHINE).unlink(missing_ok=True)
    folder = paths.withdrawn.relative_to(paths.root)
    return [f"no longer recorded, so moved to {folder}: {', '.join(withdrawn)}"] if withdrawn else []
