"""Bring the committed history into the folder that asv works in, before anything is measured or shown."""

from __future__ import annotations

from highway_bench.history.files import (
    MACHINE,
    CutShort,
    copy_file,
    machine_folders,
    read_machine,
    read_result,
    result_paths,
)
from highway_bench.history.layout import Layout
from highway_bench.history.machine import check_clash


def merge_recorded(layout: Layout) -> list[str]:
    """Copy recorded results into the working folder; of a point that both have, the one measured last is kept.

    Gives a line for each working file that had to be dropped because a killed run cut it short. Raises ``BadInput``
    where a *recorded* file is broken, or any is of a newer schema, and changes nothing then: git can restore the one,
    a newer version reads the other.
    """
    recorded = [(folder, read_machine(folder), [read_result(path) for path in result_paths(folder)])
                for folder in machine_folders(layout.recorded)]
    for _, machine, _ in recorded:
        check_clash(machine, layout.results)
    lines = drop_broken(layout)
    for folder, _, results in recorded:
        target = layout.results / folder.name
        copy_file(folder / MACHINE, target / MACHINE)
        for result in results:
            there = target / result.path.name
            if not there.exists() or read_result(there).started < result.started:
                copy_file(result.path, there)
    return lines


def drop_broken(layout: Layout) -> list[str]:
    """Remove working files that a killed run cut short; they can be measured again."""
    lines = []
    for folder in machine_folders(layout.results):
        for path in result_paths(folder):
            try:
                read_result(path)
            except CutShort as error:
                path.unlink()
                lines.append(f"dropped a working file, to be measured again: {error}")
    return lines
