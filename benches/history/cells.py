"""The measurements of the history at a commit: step time, time over the roofline, bytes, and whether a block trains.

asv runs the current benchmarks against older commits, which has three consequences. Names come from this working tree,
never from the installed registry, because asv refers to parameters by index. The package is used only through the
frozen module ``highway_bench.asv_api`` (``door`` in earlier commits). What a commit does not have is n/a.

``measure_commit`` measures all ``track_*`` values of a commit in one process. This module must not import torch: asv's
fork server imports it before it forks.

Environment variables:

- HIGHWAY_BENCH_HISTORY=quick leaves out the expensive values (n/a until a full run measures them).
- HIGHWAY_BENCH_HISTORY_ONLY lists the only cells to measure (``block|family|depth``, separated by blanks).
- HIGHWAY_BENCH_HISTORY_DEVICE is cpu or cuda.
"""

from __future__ import annotations

import ast
import importlib
import math
import os
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).resolve().parents[2] / "highway_bench"
QUICK = os.environ.get("HIGHWAY_BENCH_HISTORY") == "quick"
ONLY = frozenset(os.environ.get("HIGHWAY_BENCH_HISTORY_ONLY", "").split())

DEPTHS = [10, 50, 100]
FAMILY_DEPTH = 4
OTHER_DEPTH = 10
QUICK_MEMORY, QUICK_TRAINED = 50, 10  # greatest depths for counting bytes and for training in a quick run

API_MODULES = ("highway_bench.asv_api", "highway_bench.door")  # the current name, then that of the first commits

SEEDS, STEPS = 5, 200
WORST_LOSS = 1e3  # nat: the loss of a run that diverged, because a plot needs finite values
LEAST_LOSS = 1e-6  # nat: the unit of losses, so that logarithms are positive and relative changes have a meaning
RECIPE = {"optimiser": "adam", "rate": 0.005, "decay": 0.1, "steps": STEPS, "threshold": 0.1}

Key = tuple[str, str, str, int]  # series, block, family, depth


def literals(folder: str, *decorators: str) -> dict[str, dict[str, Any]]:
    """Names that this working tree registers in ``folder`` by one of ``decorators``, with their literal keywords.

    They are read from the source, because the installed ``highway_bench.registry`` belongs to another commit. A test
    compares them with the registries.
    """
    registered: dict[str, dict[str, Any]] = {}
    for path in sorted((PACKAGE / folder).glob("[!_]*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") in decorators and node.args):
                continue
            if isinstance(node.args[0], ast.Constant):  # a variable occurs in the definition of the decorator only
                registered[node.args[0].value] = {
                    word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)
                }
    return dict(sorted(registered.items()))


BLOCKS = literals("blocks", "register_block", "register_variant")
CORE = [name for name, about in BLOCKS.items() if about.get("core")]
OTHERS = [name for name in BLOCKS if name not in CORE]
FAMILIES = list(literals("families", "register_family"))
CELLS = (
    [(block, family, FAMILY_DEPTH) for family in FAMILIES for block in CORE]
    + [(block, "dense", depth) for depth in DEPTHS for block in CORE]
    + [(block, "dense", OTHER_DEPTH) for block in OTHERS]
)


class Lacking(NotImplementedError):
    """This commit does not have the requested cell or API: n/a."""


@lru_cache(maxsize=1)
def asv_api() -> ModuleType:
    """The package's API for asv, ready to measure, with torch limited to one thread.

    Raises ``Lacking`` at a commit without the API.
    """
    for name in API_MODULES:
        try:
            module = importlib.import_module(name)
            break
        except ModuleNotFoundError as error:
            if error.name not in ("highway_bench", name):
                raise
    else:
        raise Lacking("this commit has no API for asv")
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    if hasattr(module, "prepare"):  # the first commits lack it
        module.prepare()
    return module


@lru_cache(maxsize=1)
def device() -> str:
    """The device of the environment variable; by default a GPU where there is one, else the CPU."""
    torch = sys.modules.get("torch")
    default = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
    return os.environ.get("HIGHWAY_BENCH_HISTORY_DEVICE") or default


def sizes(family: str) -> dict[str, Any]:
    """Plain's width, the batch size and the snap of a timed cell; larger on a GPU, which small cells do not load."""
    kind = family.partition("-")[0]
    widths = {"dense": (128, 1024), "conv": (16, 128)}.get(kind, (64, 512))
    batches = {"dense": (128, 1024)}.get(kind, (16, 64))
    large = device() == "cuda"
    return {
        "nominal_width": widths[large],
        "batch_size": batches[large],
        "snap": 64 if large else 8,
        "device": device(),
    }


def lacking(error: Exception) -> bool:
    """Whether ``error`` means that the commit does not have the cell: an unknown name or field, or a skipped pair.

    Classes are compared by name, because they belong to the measured commit. Any other error is a failure.
    """
    unknown_field = isinstance(error, TypeError) and str(error).startswith("Cell.__init__() got an unexpected keyword")
    return unknown_field or type(error).__name__ in ("UnknownName", "Skip")


class Steps:
    """A workload that is built, warmed up and ready to be timed. Raises ``Lacking`` where the commit lacks the cell."""

    def __init__(self, block: str, family: str, depth: int) -> None:
        module = asv_api()
        try:
            self.work = module.workload("throughput", block, family, depth, phase="forward-backward", **sizes(family))
        except Exception as error:
            if lacking(error):
                raise Lacking(str(error)) from error
            raise
        for _ in range(2):  # so that lazy set-up is never timed, not even by asv's --quick
            self.work.step()
            self.work.restore()


@lru_cache(maxsize=1)
def steps(block: str, family: str, depth: int) -> Steps:
    """The workload of a cell, cached because asv calls ``setup`` before every sample."""
    return Steps(block, family, depth)


def measure_commit() -> dict[Key, list[float] | str]:
    """All ``track_*`` values of this commit, by key: samples, or the error's message where the measurement failed."""
    samples: dict[Key, list[float] | str] = {}
    try:
        module = asv_api()
    except Lacking:
        return samples
    cells = [cell for cell in CELLS if not ONLY or "|".join(map(str, cell)) in ONLY]
    cells = list(dict.fromkeys(cells))
    times, recipe = (2, {"seconds": 0.03, "samples": 4}) if QUICK else (3, {"seconds": 0.1, "samples": 10})
    for _ in range(times):  # whole passes, whose differences are the noise (A against A)
        for block, family, depth in cells:
            values = measure_cell(
                module,
                samples,
                ["slowdown"],
                "throughput",
                block,
                family,
                depth,
                phase="forward-backward",
                recipe=recipe,
                **sizes(family),
            )
            add_sample(samples, ("slowdown", block, family, depth), values.get("slowdown"))
    for block, family, depth in cells:
        if not QUICK or depth <= QUICK_MEMORY:
            values = measure_cell(
                module,
                samples,
                ["peak_bytes", "saved_bytes"],
                "memory",
                block,
                family,
                depth,
                phase="train-step",
                **sizes(family),
            )
            add_sample(samples, ("peak_bytes", block, family, depth), values.get("peak"))
            add_sample(samples, ("saved_bytes", block, family, depth), values.get("saved_activations"))
    for block, family, depth in cells:
        if depth in DEPTHS and block in CORE and family == "dense" and (not QUICK or depth <= QUICK_TRAINED):
            for seed in range(SEEDS):
                values = measure_cell(
                    module,
                    samples,
                    ["log_loss", "steps_to_threshold"],
                    "trainability",
                    block,
                    family,
                    depth,
                    nominal_width=32,
                    batch_size=50,
                    dataset="digits",
                    recipe=RECIPE,
                    seed=seed,
                    device=device(),
                )
                if values:
                    reached = values.get("steps_to_threshold")
                    add_sample(samples, ("log_loss", block, family, depth), log_loss(values.get("final_loss")))
                    add_sample(
                        samples, ("steps_to_threshold", block, family, depth), STEPS if reached is None else reached
                    )
    return samples


measure_commit.timeout = 3600  # type: ignore[attr-defined]


def measure_cell(
    module: ModuleType,
    samples: dict[Key, list[float] | str],
    names: list[str],
    task: str,
    block: str,
    family: str,
    depth: int,
    **fields: Any,
) -> dict[str, float | None]:
    """The metrics of a cell; none where the commit lacks it. Any other error becomes the value of the series
    ``names``, which then fail with its message."""
    try:
        values: dict[str, float | None] = module.measured(task, block, family, depth, **fields)
    except Exception as error:
        if not lacking(error):
            for series in names:
                samples[series, block, family, depth] = f"{type(error).__name__}: {error}"
        return {}
    return values


def add_sample(samples: dict[Key, list[float] | str], key: Key, value: float | None) -> None:
    """Add a finite sample to the series ``key``, unless that has failed."""
    of_key = samples.setdefault(key, [])
    if value is not None and math.isfinite(value) and isinstance(of_key, list):
        of_key.append(float(value))


def log_loss(loss: float | None) -> float:
    """log₁₀ of the loss in units of 1e-6 nat, between 0 and 9; 9 for a run that diverged."""
    return math.log10(min(max(WORST_LOSS if loss is None else loss, LEAST_LOSS), WORST_LOSS) / LEAST_LOSS)
