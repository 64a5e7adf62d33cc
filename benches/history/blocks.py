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

from current.asv_suite.benchmarks import benchmarks as _benchmarks  # noqa: E402
from current.asv_suite.series import Suite as _Suite  # noqa: E402
from current.registry import literal_calls as _literal_calls  # noqa: E402

_BLOCKS = _literal_calls(PACKAGE / "blocks", "register_block")
_CORE = tuple(sorted(name for name, about in _BLOCKS.items() if about.get("group") == "core"))
_FAMILIES = _literal_calls(PACKAGE / "families", "register_family")

SUITE = _Suite(
    core=_CORE,
    others=tuple(sorted(name for name, about in _BLOCKS.items() if name not in _CORE and "needs" not in about)),
    families=tuple(sorted(name for name, about in _FAMILIES.items() if about.get("group") != "variant")),
    timed=("conv", "bilstm", "transformer"),
)
globals().update(_benchmarks(SUITE))
