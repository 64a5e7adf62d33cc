"""What asv follows at this project's commits: every block, and every family but variants, of the working tree.

asv refers to parameters by index, so names come from this tree's source, never from the measured commit's registry. No
module that asv discovers may import torch: its fork server imports them before it forks.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[2] / "highway_bench"

# This tree's package has another name here, because the measured commit's is ``highway_bench``.
if "current" not in sys.modules:
    sys.modules["current"] = ModuleType("current")
    sys.modules["current"].__path__ = [str(PACKAGE)]

from current.declared import Entry as _Entry  # noqa: E402
from current.declared import declared_in as _declared_in  # noqa: E402
from current.history.suite.benchmarks import benchmarks as _benchmarks  # noqa: E402
from current.history.suite.series import Suite as _Suite  # noqa: E402


def _declared(section: str) -> list[_Entry]:
    entries = _declared_in(sorted((PACKAGE / section).glob("*.py")))
    return sorted(entries, key=lambda entry: str(entry["name"]))


_BLOCKS = [block for block in _declared("blocks") if block.get("group") != "control"]
_CORE = [block for block in _BLOCKS if block.get("group") == "core"]

SUITE = _Suite(
    core=tuple(block["name"] for block in _CORE),
    others=tuple(block["name"] for block in _BLOCKS if block not in _CORE and "needs" not in block),
    families=tuple(family["name"] for family in _declared("families") if family.get("group") != "variant"),
    timed=("conv", "bilstm", "transformer"),
)
globals().update(_benchmarks(SUITE))
