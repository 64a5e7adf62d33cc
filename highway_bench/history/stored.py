"""Two commits' stored points, side by side."""

from __future__ import annotations

import itertools

from highway_bench.errors import NothingMeasured
from highway_bench.history import git
from highway_bench.history.compare import ValueChange
from highway_bench.history.files import read_results
from highway_bench.history.lines import followed_in
from highway_bench.history.paths import Paths


def stored_values(paths: Paths, first: str, second: str) -> list[ValueChange]:
    """The series of which a machine has a value at both commits, with the same python and torch.

    Raises ``NothingMeasured`` where no machine has such points.
    """
    commits = [git.commit_of(paths.root, name) for name in (first, second)]
    results = [result for result in read_results(paths.results) if result.is_told_apart]
    every = [[one for one in results if one.commit == commit] for commit in commits]
    found = []
    for (old, new), (name, key) in itertools.product(itertools.product(*every), paths.suite().names.items()):
        name = f"blocks.{name}"
        before, after = old.points.get(name), new.points.get(name)
        if before and after and old.machine == new.machine and old.identity(name) == new.identity(name):
            device = followed_in(new, key, name).device
            found.append(ValueChange(*key, before.value, after.value, device, new.machine))
    if not found:
        raise NothingMeasured(f"no machine has points of {first} and {second}: highway-bench history run COMMIT")
    return found
