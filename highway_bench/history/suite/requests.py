"""What a process that measures one package can be asked, a JSON object a line.

The response is ``{"value": …}``, ``{"lacking": reason}`` where the package does not have the cell, or ``{"failed":
message}``. The measured package is reached only through its ``asv_api``, which does not change.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from ...measure.clock import ALL_CAPPED, Budget, take_turns
from ...measure.flops import count_flops, count_operations
from ...measure.gpu_watch import stopwatch_of
from ...measure.processes import keep_freed_memory
from ...measure.yardsticks import YardstickStep
from ...os_names import pin
from .series import HistoryCell

API_MODULES = ("highway_bench.asv_api", "highway_bench.door")  # the current name, then that of the first commits
PHASE = "forward-backward"
LEAST_ROUNDS = 5  # of a ratio, where the time is up before there are as many as asked for
WARM = 2  # steps, so that lazy set-up is never timed


class Lacking(Exception):
    """The measured package does not have the requested cell, or has no API for asv."""


class Requests:
    """What a process can be asked. The methods are named after the requests, and their arguments are the fields."""

    def __init__(self, device: str) -> None:
        self.device, self.api = device, api()
        torch.set_num_threads(1)
        if hasattr(self.api, "prepare"):  # the first commits lack it
            self.api.prepare()
        keep_freed_memory()
        self.watch = stopwatch_of(device, 1)
        self.work: Any = None

    def ratios(
        self, blocks: Sequence[str], family: str, depth: int, samples: int, seconds: float, seed: int, size: str = ""
    ) -> dict[str, dict[str, float] | str | None]:
        """Each block's step time over the yard-stick's, ``ratio``, and its ``seconds``, medians over rounds of all of
        them in turn; on a GPU also ``gpu_seconds``, without the launching of kernels.

        A text is the reason of a failure, ``None`` means that the package lacks the block.
        """
        works: dict[str, Any] = {}
        found: dict[str, dict[str, float] | str | None] = {}
        for block in blocks:
            try:
                works[block] = self.built(block, family, depth, size)
            except Lacking:
                found[block] = None
            except Exception as error:  # one block's failure must not cost the others' values
                found[block] = f"{type(error).__name__}: {error}"
        if not works:
            return found
        plain = works.get("plain") or self.built("plain", family, depth, size)
        width = plain.x.shape[2 if plain.x.ndim == 3 else 1]
        yardstick = YardstickStep(yardstick_of(family, plain.x.ndim), width, depth, plain.x, PHASE)
        arms = works | {"yard-stick": yardstick}
        turns = take_turns(
            {name: arm.step for name, arm in arms.items()},
            Budget(min_samples=samples, min_seconds=seconds, warmup_samples=WARM, warmup_seconds=0.05),
            restore={name: arm.restore for name, arm in arms.items()},
            launch={block: work.launch for block, work in works.items() if hasattr(work, "launch")},  # not at first
            watch=self.watch,
            seed=seed,
        )
        divisors = turns.seconds["yard-stick"]
        if len(divisors) < min(samples, LEAST_ROUNDS):
            return found | dict.fromkeys(works, f"only {len(divisors)} rounds in the time that a group has")
        if turns.all_disturbed and turns.capped:  # on a CPU, disturbed rounds give ratios all the same
            return found | dict.fromkeys(works, f"{ALL_CAPPED} ({', '.join(sorted(turns.caps))})")
        for block in works:
            times = turns.seconds[block]
            ratio = statistics.median(time / divisor for time, divisor in zip(times, divisors, strict=True))
            on_gpu = {"gpu_seconds": statistics.median(turns.on_gpu[block])} if block in turns.on_gpu else {}
            found[block] = {"ratio": ratio, "seconds": statistics.median(times), **on_gpu}
        return found

    def load(self, blocks: Sequence[str], families: Sequence[str]) -> None:
        """Load what is to be measured, until one block and family can be; raises the first error if none can."""
        errors: list[Exception] = []
        for family, block in itertools.product(families, blocks):
            try:
                self.call(self.api.cell, "throughput", block, family, 1, **sizes_of(family, self.device))
                self.check_source(block, family)
            except Exception as error:
                errors.append(error)
            else:
                return
        raise next((error for error in errors if not isinstance(error, Lacking)), errors[0])

    def counts(self, block: str, family: str, depth: int, size: str = "") -> dict[str, int]:
        """The exact counts of a step: operators, kernels, FLOP and bytes."""
        work = self.built(block, family, depth, size)
        flop = count_flops(work.step)
        work.restore()
        operations = count_operations(work.step)
        return {"flop": flop, **operations._asdict()}

    def measured(
        self, task: str, block: str, family: str, depth: int, fields: dict[str, Any], size: str = ""
    ) -> dict[str, Any]:
        """The metrics that the package's own task measures at a cell."""
        sizes = {} if "nominal_width" in fields else sizes_of(family, self.device, size)
        metrics: dict[str, Any] = self.call(
            self.api.measured, task, block, family, depth, **sizes, device=self.device, **fields
        )
        return metrics

    def prepare(self, block: str, family: str, depth: int, size: str = "") -> None:
        """Build the workload of ``step``."""
        self.work = None  # two at a time may not fit
        self.work = self.built(block, family, depth, size)

    def step(self) -> tuple[float, float]:
        """Seconds of one step, without and with the wait for the core.

        An untimed one comes first: another process had the core, and its caches, in between.
        """
        self.work.step()
        self.work.restore()
        wall, start = self.watch.wall(), self.watch.clock()
        self.work.step()
        seconds = self.watch.clock() - start
        wall = self.watch.wall() - wall
        self.work.restore()
        return seconds, wall

    def built(self, block: str, family: str, depth: int, size: str = "") -> Any:
        """The prepared workload of a cell, warmed up."""
        sizes = sizes_of(family, self.device, size)
        work = self.call(
            self.api.workload, "throughput", block, family, depth, phase=PHASE, device=self.device, **sizes
        )
        self.check_source(block, family)
        for _ in range(WARM):
            work.step()
            work.restore()
        return work

    def check_source(self, block: str, family: str) -> None:
        """Raise ``RuntimeError`` if nothing was imported from the tree that is to be measured, if one is named.

        An editable install can come before the path; then the steps of a checkout would be timed instead.
        """
        tree = os.environ.get("HIGHWAY_BENCH_SUITE_TREE")
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        if tree and not any(file and Path(file).is_relative_to(tree) for file in files):
            raise RuntimeError(f"{block} and {family} were imported from elsewhere than the commit's files")

    def call(self, function: Any, *args: Any, **fields: Any) -> Any:
        """The result of a function of the API; raises ``Lacking`` where the package does not have the cell."""
        try:
            return function(*args, **fields)
        except Exception as error:
            if lacking(error):
                raise Lacking(str(error)) from error
            raise


def api() -> ModuleType:
    """The measured package's API for asv; raises ``Lacking`` where it has none."""
    for name in API_MODULES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in ("highway_bench", name):
                raise
    raise Lacking("this commit has no API for asv")


def lacking(error: Exception) -> bool:
    """Whether ``error`` means that the package does not have the cell: an unknown name or field, or a skipped pair.

    Classes are compared by name, because they belong to the measured package. Any other error is a failure.
    """
    unknown_field = isinstance(error, TypeError) and str(error).startswith("Cell.__init__() got an unexpected keyword")
    return unknown_field or type(error).__name__ in ("UnknownName", "Skip")


def sizes_of(family: str, device: str, size: str = "") -> dict[str, int]:
    """Plain's width, the batch size and the snap of a timed cell."""
    width, batch = HistoryCell("", family, 0, size).sizes(device)
    return {"nominal_width": width, "batch_size": batch, "snap": 64 if device == "cuda" else 8}


def yardstick_of(family: str, axes: int) -> str:
    """The yard-stick of a family whose input has this number of ``axes``: that which the family names, if it does."""
    families = importlib.import_module("highway_bench.families")  # the measured package's
    known = getattr(families.make_family(family), "yardstick", None)  # those of early commits name none
    if family == "bilstm":
        return known or "lstm"
    return known or {2: "linear", 3: "attention", 4: "convolution"}[axes]


def main() -> None:
    """Respond to requests until the input is closed."""
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the package prints, or a library below Python, must not be read as a response
    if core := os.environ.get("HIGHWAY_BENCH_SUITE_CORE"):  # from here on: imports of two processes need two cores
        pin({int(core)})
    requests: Requests | None = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if requests is None:
                requests = Requests(os.environ["HIGHWAY_BENCH_SUITE_DEVICE"])
            response = json.dumps({"value": getattr(requests, message.pop("request"))(**message)})
        except Lacking as reason:
            response = json.dumps({"lacking": str(reason)})
        except Exception as error:
            response = json.dumps({"failed": f"{type(error).__name__}: {error}"})
        responses.write(response + "\n")
        responses.flush()
