"""Mutations: thirty small faults, one a module, of which the tests must notice at least 28.

    python -m tests.mutations              # all of them, in a copy of the checkout: about half an hour
    python -m tests.mutations 3 7          # some, by number

A mutation replaces a piece of code that stands once in the package, wherever its file is by then. ``tests`` are the
folders and files whose tests are to notice it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEAST = 28
LEFT_OUT = shutil.ignore_patterns(".git", ".nox", ".venv", ".*_cache", "__pycache__", "reports")


class Mutation(NamedTuple):
    """A piece of ``code``, the ``fault`` in its place, and the ``tests`` that are to notice it."""

    code: str
    fault: str
    tests: str


MUTATIONS = (
    Mutation("data.std(ddof=1) / math.sqrt(n)", "data.std(ddof=0) / math.sqrt(n)", "measure"),
    Mutation("if -equal_within <= difference.low and", "if", "measure"),
    Mutation("if 2 * diverged > runs - successes", "if diverged > runs - successes", "success"),
    Mutation("TAIL = 0.05", "TAIL = 0.5", "success training tasks"),
    Mutation("key=lambda steps: abs(cost(steps * step) - budget)", "key=lambda steps: steps", "test_matching.py"),
    Mutation("torch.lerp(self.carry(x), h,", "torch.lerp(h, self.carry(x),", "blocks"),
    Mutation("site.joins**0.25, (4 * site.joins) ** -0.25", "site.joins**0.5, (4 * site.joins) ** -0.25", "blocks"),
    Mutation("nn.init.orthogonal_(weight, gain=preserving)", "nn.init.orthogonal_(weight)", "families"),
    Mutation("GRID[max(0, index - 1) : index + 2]", "GRID[max(0, index - 2) : index + 2]", "decide"),
    Mutation("self.by_loss(rung - 1, connection)[:LATER_TRIES]", "self.by_loss(rung - 1, connection)[:1]", "advice"),
    Mutation("np.arange(1, self.warm_up + 1) / (", "np.arange(0, self.warm_up) / (", "training"),
    Mutation("mean.lerp_(gradient, 1 - first)", "mean.lerp_(gradient, first)", "training"),
    Mutation("seen + kind * shorter", "seen + total * shorter", "data"),
    Mutation("x = x.float() / 255", "x = x.float() / 256", "data"),
    Mutation("max(1, len(split.inputs) // TEST_SHARE)", "max(2, len(split.inputs) // TEST_SHARE)", "data"),
    Mutation("SHUT, OPEN, FULL = 0.05, 0.5, 0.95", "SHUT, OPEN, FULL = 0.05, 0.6, 0.95", "analysis tasks"),
    Mutation("* (3 * query[-1] + 2 * value[-1])", "* (2 * query[-1] + 2 * value[-1])", "measure"),
    Mutation("if _storage_key(saved.tensor) not in own", "if True", "measure"),
    Mutation("(_measured(attempts[index]), index)", "(index, _measured(attempts[index]))", "results"),
    Mutation("if there[digest] <= here[digest]}", "if there[digest] < here[digest]}", "results"),
    Mutation("correction * TimeLeft(trained, self.workers).seconds", "TimeLeft(trained, self.workers).seconds", "plan"),
    Mutation("self._versions[runs] = versions, items", "self._versions[runs] = versions, None", "execution"),
    Mutation("again = running.job.singles_left(running.ended)", "again = []", "execution"),
    Mutation("before.value < min(point.value", "before.value < max(point.value", "history"),
    Mutation("low > self.least or (low == self.least", "low >= self.least or (low == self.least", "reproduce"),
    Mutation("if len(newest) < LEAST_TREND or", "if", "history"),
    Mutation("not known, row[\"outcome\"] not in RANKED,", "row[\"outcome\"] not in RANKED,", "report"),
    Mutation("return bool(low <= most and least <= high)", "return bool(low <= most)", "report"),
    Mutation("(values.square().mean())", "(values.mean())", "analysis"),
    Mutation("rows[\"trial\"].notna() | (rows[\"seed\"] >= self.version.seen)", "rows[\"seed\"] >= 0", "reproduce"),
)  # fmt: skip


def notice(mutation: Mutation, checkout: Path) -> bool:
    """Whether the tests fail with the fault in ``checkout``. Raises ``LookupError`` where the code stands not once."""
    paths = [path for path in (checkout / "highway_bench").rglob("*.py") if mutation.code in path.read_text("utf-8")]
    if len(paths) != 1 or paths[0].read_text("utf-8").count(mutation.code) != 1:
        raise LookupError(f"stands not once, but in {len(paths)} files: {mutation.code}")
    (path,), before = paths, paths[0].read_text("utf-8")
    path.write_text(before.replace(mutation.code, mutation.fault), "utf-8")
    chosen = [f"tests/{name}" for name in mutation.tests.split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--benchmark-disable", "-m", "not slow", *chosen]
    try:
        environment = os.environ | {"PYTHONPATH": str(checkout)}
        return bool(subprocess.run(command, cwd=checkout, env=environment, capture_output=True, check=False).returncode)
    finally:
        path.write_text(before, "utf-8")


def main() -> str | None:
    chosen = [int(word) for word in sys.argv[1:]] or range(len(MUTATIONS))
    missed = []
    with tempfile.TemporaryDirectory() as name:
        checkout = Path(name) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)
        for number in chosen:
            noticed = notice(MUTATIONS[number], checkout)
            missed += [] if noticed else [MUTATIONS[number].code]
            sys.stdout.write(f"{number} {'noticed' if noticed else 'missed'}: {MUTATIONS[number].code}\n")
            sys.stdout.flush()
    allowed = len(MUTATIONS) - LEAST
    return f"{len(missed)} of {len(chosen)} were missed: {'; '.join(missed)}" if len(missed) > allowed else None


if __name__ == "__main__":
    sys.exit(main())
