"""highway_bench: how should the layers of a network be joined, and what does it cost?

The public names, loaded at first use: importing this module imports neither torch nor pandas.

    >>> import highway_bench as hb
    >>> network = hb.build("highway", "dense", width=50, depth=10)

Registries are reached in their packages: ``from highway_bench.blocks import blocks``.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what editors and type checkers see; a test holds it equal to the table below
    from highway_bench.block_check import check_block as check_block
    from highway_bench.blocks import Block as Block
    from highway_bench.blocks import BlockSpec as BlockSpec
    from highway_bench.blocks import Start as Start
    from highway_bench.blocks import register_block as register_block
    from highway_bench.families import Family as Family
    from highway_bench.families import Gate as Gate
    from highway_bench.families import Site as Site
    from highway_bench.families import family as family
    from highway_bench.frames.results import Results as Results
    from highway_bench.frames.results import open_results as open_results
    from highway_bench.interactive.comparing import compare as compare
    from highway_bench.interactive.measured import MeasuredRows as MeasuredRows
    from highway_bench.interactive.run import list_blocks as list_blocks
    from highway_bench.interactive.run import list_datasets as list_datasets
    from highway_bench.interactive.run import list_families as list_families
    from highway_bench.interactive.run import list_tasks as list_tasks
    from highway_bench.interactive.run import run as run
    from highway_bench.network import build as build
    from highway_bench.peers.comparison import compare_peers as compare_peers
    from highway_bench.plan.plan import Plan as Plan
    from highway_bench.plan.selection import Selection as Selection
    from highway_bench.report.choice.answers import answers as answers
    from highway_bench.report.page import write_report as write_report
    from highway_bench.results import Store as Store
    from highway_bench.studies.advice.answer import Advice as Advice
    from highway_bench.studies.advice.run import advise as advise

__version__ = "0.3.1"

_HOMES = {
    "Advice": "highway_bench.studies.advice.answer",
    "Block": "highway_bench.blocks",
    "BlockSpec": "highway_bench.blocks",
    "Family": "highway_bench.families",
    "Gate": "highway_bench.families",
    "MeasuredRows": "highway_bench.interactive.measured",
    "Plan": "highway_bench.plan.plan",
    "Selection": "highway_bench.plan.selection",
    "Results": "highway_bench.frames.results",
    "Site": "highway_bench.families",
    "Start": "highway_bench.blocks",
    "Store": "highway_bench.results",
    "advise": "highway_bench.studies.advice.run",
    "answers": "highway_bench.report.choice.answers",
    "build": "highway_bench.network",
    "check_block": "highway_bench.block_check",
    "compare": "highway_bench.interactive.comparing",
    "compare_peers": "highway_bench.peers.comparison",
    "family": "highway_bench.families",
    "list_blocks": "highway_bench.interactive.run",
    "list_datasets": "highway_bench.interactive.run",
    "list_families": "highway_bench.interactive.run",
    "list_tasks": "highway_bench.interactive.run",
    "open_results": "highway_bench.frames.results",
    "register_block": "highway_bench.blocks",
    "run": "highway_bench.interactive.run",
    "write_report": "highway_bench.report.page",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


warnings.filterwarnings("ignore", "IProgress not found")  # of optuna's tqdm, in a notebook without widgets
