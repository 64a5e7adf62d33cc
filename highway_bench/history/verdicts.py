"""What is stored next to a machine's points, a file each, for git: the gate's verdicts on times, and gaps.

A verdict is taken once: the same rise, timed again at each gate, would sooner or later get the other one by chance. A
gap is a commit that cannot be built or imported.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from highway_bench.errors import BadInput
from highway_bench.history.files import read_json, write_json
from highway_bench.history.lines import PROPOSED, SuspectedRegression
from highway_bench.measure.statistics import IntervalEstimate

VERDICTS, GAPS = "verdicts", "gaps"  # in a machine's folder of points


class GateVerdict(StrEnum):
    """What became of a series that got worse; the worst first."""

    REGRESSION = "regression"
    UNDECIDED = "undecided"
    UNCONFIRMED = "not confirmed"


class StoredVerdict(NamedTuple):
    """A verdict on a rise between the commits ``good`` and ``last``: ``commit``, or HEAD for a slow rise.

    ``level`` is that of the stored points after the rise, ``None`` where there were none; ``ratio`` the step's time at
    ``head`` over that at ``good``, with its interval and the number of pairs of processes.
    """

    environment: str
    series: str
    good: str
    commit: str
    last: str
    head: str
    verdict: str
    level: float | None
    ratio: tuple[float, float, float, int]

    @property
    def path(self) -> str:
        """Its file's name."""
        key = hashlib.sha256(f"{self.environment} {self.series}".encode()).hexdigest()[:12]
        return f"{self.good[:8]}-{self.commit[:8]}-{key}.verdict"

    @property
    def interval(self) -> IntervalEstimate:
        return IntervalEstimate(*self.ratio)

    def covers(self, rise: SuspectedRegression, order: Mapping[str, int]) -> bool:
        """Whether ``rise`` is the one that was judged: of this series, at overlapping commits, and not higher since."""
        if (rise.of.environment, rise.of.name) != (self.environment, self.series):
            return False
        if not {self.good, self.last} <= order.keys():  # rewritten since
            return False
        overlap = min(order[last_of(rise, order)], order[self.last]) - max(order[rise.good], order[self.good])
        return overlap > 0 and not (self.level is not None and rise.level > PROPOSED * self.level)


def last_of(rise: SuspectedRegression, order: Mapping[str, int]) -> str:
    """The last commit of a rise: the first bad one, or HEAD for a slow rise, which goes on."""
    return list(order)[-1] if rise.trend else rise.commit


def read_verdicts(machine: Path) -> list[tuple[Path, StoredVerdict]]:
    """The stored verdicts in a machine's folder of points; raises ``BadInput`` for a file that is none."""
    found = []
    for path in sorted((machine / VERDICTS).glob("*.verdict")):
        data = read_json(path)
        try:
            stored = StoredVerdict(**data)
            GateVerdict(stored.verdict)
            IntervalEstimate(*stored.ratio)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{path} is no verdict: {error}") from None
        found.append((path, stored))
    return found


def covering(results: Path, rise: SuspectedRegression, order: Mapping[str, int]) -> StoredVerdict | None:
    """The newest stored verdict on ``rise``, if there is one."""
    every = [one for _, one in read_verdicts(results / rise.of.machine) if one.covers(rise, order)]
    return max(every, key=lambda one: order.get(one.head, -1), default=None)


def store_verdict(
    results: Path, rise: SuspectedRegression, verdict: GateVerdict, ratio: IntervalEstimate, order: Mapping[str, int]
) -> None:
    """Store a verdict in the folder of points, in place of an earlier one on the same commits."""
    level = None if math.isnan(rise.level) else rise.level
    numbers = ratio.value, ratio.low, ratio.high, ratio.n
    head, last = list(order)[-1], last_of(rise, order)
    stored = StoredVerdict(
        rise.of.environment, rise.of.name, rise.good, rise.commit, last, head, verdict, level, numbers
    )
    write_json(results / rise.of.machine / VERDICTS / stored.path, stored._asdict())


def forget_verdicts(machine: Path, commit: str) -> None:
    """Remove the verdicts on rises from or to a commit whose point is replaced."""
    for path, stored in read_verdicts(machine):
        if commit in (stored.good, stored.commit, stored.last):
            path.unlink()


def rename_commits(machine: Path, renamed: Mapping[str, str]) -> None:
    """Let verdicts follow their rewritten commits."""
    for path, stored in read_verdicts(machine):
        good, commit, last, head = (
            renamed.get(one, one) for one in (stored.good, stored.commit, stored.last, stored.head)
        )
        moved = stored._replace(good=good, commit=commit, last=last, head=head)
        if moved != stored:
            path.unlink()
            write_json(path.with_name(moved.path), moved._asdict())


class Gap(NamedTuple):
    """A commit without a point, and the reason."""

    commit: str
    reason: str


def gap_path(machine: Path, commit: str) -> Path:
    """The file of the gap at a commit, in a machine's folder of points."""
    return machine / GAPS / f"{commit[:8]}.gap"


def store_gap(machine: Path, commit: str, reason: Exception) -> None:
    """Store why ``commit`` has no point in a machine's folder of points."""
    write_json(gap_path(machine, commit), Gap(commit, str(reason))._asdict())


def read_gaps(machine: Path) -> list[Gap]:
    """The gaps in a machine's folder of points; raises ``BadInput`` for a file that is none."""
    found = []
    for path in sorted((machine / GAPS).glob("*.gap")):
        try:
            found.append(Gap(**read_json(path)))
        except TypeError as error:
            raise BadInput(f"{path} is no gap: {error}") from None
    return found
