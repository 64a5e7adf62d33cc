"""Copy this machine's points from the ignored working folder into the committed history."""

from __future__ import annotations

from dataclasses import dataclass, field

from highway_bench.errors import BadInput, NothingMeasured
from highway_bench.history.files import MACHINE, copy_file, read_machine, read_result, result_paths
from highway_bench.history.git import check_whole, line_of
from highway_bench.history.layout import Layout
from highway_bench.history.machine import check_clash


@dataclass
class Recorded:
    """What became of each point: the commits that were ``added``, ``kept`` as recorded before, or ``left`` and why."""

    machine: str
    added: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{len(self.added)} points recorded", f"{len(self.replaced)} replaced", f"{len(self.kept)} kept"]
        return f"{self.machine}: {', '.join(parts)}" + "".join(f"\n  left out: {line}" for line in self.left)


def record(layout: Layout, machine: str, *, replace: bool = False) -> Recorded:
    """Record the points of ``machine``. A point that is recorded already stays as it is, unless ``replace``.

    Points of uncommitted trees are never here: they lie in a folder of their own. Raises ``NothingMeasured`` where the
    machine has no points, ``BadInput`` where the history is that of other hardware of this name, or is broken.
    """
    check_whole(layout.root)
    source = layout.results / machine
    paths = result_paths(source) if source.is_dir() else []
    if not paths:
        raise NothingMeasured(f"there are no points of machine {machine!r} to record; run nox -s history first")
    check_clash(read_machine(source), layout.recorded)
    line = set(line_of(layout.root))
    done = Recorded(machine)
    target = layout.recorded / machine
    for path in paths:
        try:
            result = read_result(path)
        except BadInput as error:
            done.left.append(str(error))
            continue
        short, there = result.commit[:8], target / path.name
        if there.exists():
            read_result(there)  # one that is cut short keeps nothing: git can restore it
        if result.commit not in line:
            done.left.append(f"{short} is not on HEAD's first-parent line, so that no page would show it")
        elif not result.points:
            done.left.append(f"{short} has no value at all")
        elif there.exists() and (not replace or there.read_bytes() == path.read_bytes()):
            done.kept.append(short)
        else:
            (done.replaced if there.exists() else done.added).append(short)
            copy_file(source / MACHINE, target / MACHINE)
            copy_file(path, there)
    return done
