"""Copy this machine's points from the ignored working folder into the committed history."""

from __future__ import annotations

from dataclasses import dataclass, field

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.combine import combined
from highway_bench.history.files import (
    MACHINE,
    check_machine,
    copy_file,
    read_machine,
    read_result,
    result_paths,
    write_json,
)
from highway_bench.history.git import check_not_shallow, line_of
from highway_bench.history.machine import check_clash, check_name
from highway_bench.history.merge import merge_recorded, note_recorded
from highway_bench.history.paths import Paths
from highway_bench.history.working_folder import exclusive


@dataclass
class RecordSummary:
    """The commits whose points were ``added``, ``replaced`` or left ``unchanged``, a line for each that was
    ``left_out``, and the ``lines`` of the merge into the working folder."""

    machine: str
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [
            f"{len(self.added)} points recorded",
            f"{len(self.replaced)} replaced",
            f"{len(self.unchanged)} unchanged",
        ]
        left = [f"  left out: {line}" for line in self.left_out]
        return "\n".join([*self.lines, f"{self.machine}: {', '.join(parts)}", *left])


@exclusive
def record(paths: Paths, machine: str, *, replace: bool = False) -> RecordSummary:
    """Record the points of ``machine``.

    A recorded point changes only with ``replace``: then the newest row of each benchmark counts, and no value is lost.
    Points of uncommitted trees are in another folder, and are never recorded. Raises ``NothingMeasured`` if the machine
    has no points, ``BadInput`` if the history has other hardware of this name, or is broken.
    """
    check_name(machine)
    check_not_shallow(paths.root)
    done = RecordSummary(machine, lines=merge_recorded(paths))
    source, target = paths.results / machine, paths.recorded / machine
    files = result_paths(source) if source.is_dir() else []
    if not files:
        raise NothingMeasured(
            "; ".join([*done.lines, f"there are no points of machine {machine!r} to record: run nox -s history first"])
        )
    entry = read_machine(source)
    check_clash(entry, paths.recorded)
    line = set(line_of(paths.root))
    for path in files:
        try:
            result = read_result(path)
            check_machine(result, entry)
        except BadInput as error:
            done.left_out.append(str(error))
            continue
        short, there = result.commit[:8], target / path.name
        if result.commit not in line:
            done.left_out.append(f"{short} is not on HEAD's first-parent line, so no page would show it")
        elif not result.points:
            done.left_out.append(f"{short} has no value at all")
        elif not there.exists():
            done.added.append(short)
            if not (target / MACHINE).exists():
                copy_file(source / MACHINE, target / MACHINE)
            copy_file(path, there)
        elif replace and (both := combined(known := read_result(there), result, over_failures=True)) is not known:
            done.replaced.append(short)
            write_json(there, both.data)
        else:
            done.unchanged.append(short)
    note_recorded(paths)
    return done
