"""What the history follows of every block: step time, time over the roofline, bytes, and whether it trains.

asv runs today's benchmarks against yesterday's commits. So names come from this working tree (never from the installed
registry: asv asks for parameters by index), the package is reached through ``highway_bench.asv_api`` alone, which is
frozen (earlier commits call it ``door``), and what a commit does not have is n/a. Lower is better everywhere, and
every value is finite.

All ``track_*`` values of a commit are measured in one process, by ``measure_commit``; the benchmarks only look them up
and import no torch. This module must not import torch either: asv's fork server holds it while it forks.

Environment: HIGHWAY_BENCH_HISTORY=quick leaves out the dear values (n/a until a full run fills them in),
HIGHWAY_BENCH_HISTORY_ONLY names cells (``block|family|depth``, split by blanks) to measure alone,
HIGHWAY_BENCH_HISTORY_DEVICE is cpu or cuda.
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
QUICK_MEMORY, QUICK_TRAINED = 50, 10  # deepest cells whose bytes are counted, and that are trained, in a quick run

ENTRANCES = ("highway_bench.asv_api", "highway_bench.door")  # today's name, then that of the first commits

VERSION = "1"  # raise it only when the meaning of the values changes: a comment must not cut every line
SEEDS, STEPS = 5, 200
WORST_LOSS = 1e3  # nat: a run that diverged counts as this, since a line cannot be drawn through infinity
LEAST_LOSS = 1e-6  # nat: the losses' unit, so that their logarithms are positive and relative steps mean something
RECIPE = {"optimiser": "adam", "rate": 0.005, "decay": 0.1, "steps": STEPS, "threshold": 0.1}

Key = tuple[str, str, str, int]  # series, block, family, depth


def literals(folder: str, *decorators: str) -> dict[str, dict[str, Any]]:
    """Names that this working tree registers in ``folder``, with their literal keywords; a test compares them with the
    registries. (``highway_bench.registry`` itself cannot be used: the installed one is another commit's.)"""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((PACKAGE / folder).glob("[!_]*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = isinstance(node, ast.Call) and getattr(node.func, "id", "") in decorators
            if called and node.args and isinstance(node.args[0], ast.Constant):  # not a decorator that calls another
                found[node.args[0].value] = {
                    word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)
                }
    return dict(sorted(found.items()))


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
    """This commit does not have what is asked for: n/a."""


# ------------------------------------------------------------------------------------------ what is measured, and how


@lru_cache(maxsize=1)
def asv_api() -> ModuleType:
    """The package's entrance for asv, ready to measure, with torch held to one thread; raises ``Lacking`` at a commit
    that has none."""
    for name in ENTRANCES:
        try:
            found = importlib.import_module(name)
            break
        except ModuleNotFoundError as error:
            if error.name not in ("highway_bench", name):
                raise
    else:
        raise Lacking("this commit has no entrance for asv")
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    if hasattr(found, "prepare"):  # the first commits lack it
        found.prepare()
    return found


@lru_cache(maxsize=1)
def device() -> str:
    """Where to measure: as asked for, else a GPU where there is one."""
    torch = sys.modules.get("torch")
    found = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
    return os.environ.get("HIGHWAY_BENCH_HISTORY_DEVICE") or found


def sizes(family: str) -> dict[str, Any]:
    """Plain's width, the batch and the snap of a timed cell: larger on a GPU, which is idle otherwise."""
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
    """Whether ``error`` says that the commit does not have the cell: an unknown name or field of a cell, or a skipped
    pair. By name, for the classes are the measured commit's; any other error is a failure."""
    unknown_field = isinstance(error, TypeError) and str(error).startswith("Cell.__init__() got an unexpected keyword")
    return unknown_field or type(error).__name__ in ("UnknownName", "Skip")


class Steps:
    """A workload that is built, warmed up, and ready to be timed."""

    def __init__(self, block: str, family: str, depth: int) -> None:
        module = asv_api()
        try:
            self.work = module.workload("throughput", block, family, depth, phase="forward-backward", **sizes(family))
        except Exception as error:
            if lacking(error):
                raise Lacking(str(error)) from error
            raise
        for _ in range(2):  # lazy set-up is over before the first timed step, also under asv's --quick
            self.work.step()
            self.work.restore()


@lru_cache(maxsize=1)
def steps(block: str, family: str, depth: int) -> Steps:
    """The workload of a cell, built once: asv calls ``setup`` before every timed call."""
    return Steps(block, family, depth)


def measure_commit() -> dict[Key, list[float] | str]:
    """All values of this commit that are looked up later: samples by key; a text where measuring failed."""
    found: dict[Key, list[float] | str] = {}
    try:
        module = asv_api()
    except Lacking:
        return found
    cells = [cell for cell in CELLS if not ONLY or "|".join(map(str, cell)) in ONLY]
    cells = list(dict.fromkeys(cells))
    times, recipe = (2, {"seconds": 0.03, "samples": 4}) if QUICK else (3, {"seconds": 0.1, "samples": 10})
    for _ in range(times):  # whole passes: how far they differ is the noise, A against A
        for block, family, depth in cells:
            values = attempt(
                module,
                found,
                ["slowdown"],
                "throughput",
                block,
                family,
                depth,
                phase="forward-backward",
                recipe=recipe,
                **sizes(family),
            )
            keep(found, ("slowdown", block, family, depth), values.get("slowdown"))
    for block, family, depth in cells:
        if not QUICK or depth <= QUICK_MEMORY:
            values = attempt(
                module,
                found,
                ["peak_bytes", "saved_bytes"],
                "memory",
                block,
                family,
                depth,
                phase="train-step",
                **sizes(family),
            )
            keep(found, ("peak_bytes", block, family, depth), values.get("peak"))
            keep(found, ("saved_bytes", block, family, depth), values.get("saved_activations"))
    for block, family, depth in cells:
        if depth in DEPTHS and block in CORE and family == "dense" and (not QUICK or depth <= QUICK_TRAINED):
            for seed in range(SEEDS):
                values = attempt(
                    module,
                    found,
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
                    keep(found, ("log_loss", block, family, depth), log_loss(values.get("final_loss")))
                    keep(found, ("steps_to_threshold", block, family, depth), STEPS if reached is None else reached)
    return found


measure_commit.timeout = 3600  # type: ignore[attr-defined]


def attempt(
    module: ModuleType,
    found: dict[Key, list[float] | str],
    names: list[str],
    task: str,
    block: str,
    family: str,
    depth: int,
    **fields: Any,
) -> dict[str, float | None]:
    """The metrics of a cell, none where the commit lacks it; any other error is kept, for these series to fail with."""
    try:
        values: dict[str, float | None] = module.measured(task, block, family, depth, **fields)
    except Exception as error:
        if not lacking(error):
            for series in names:
                found[series, block, family, depth] = f"{type(error).__name__}: {error}"
        return {}
    return values


def keep(found: dict[Key, list[float] | str], key: Key, value: float | None) -> None:
    """Add a sample; a series that has failed stays failed."""
    samples = found.setdefault(key, [])
    if value is not None and math.isfinite(value) and isinstance(samples, list):
        samples.append(float(value))


def log_loss(loss: float | None) -> float:
    """log₁₀ of the loss in units of 1e-6 nat, between 0 and 9; a run that diverged has the worst."""
    return math.log10(min(max(WORST_LOSS if loss is None else loss, LEAST_LOSS), WORST_LOSS) / LEAST_LOSS)


def look_up(values: dict[Key, list[float] | str], key: Key) -> Any:
    """What asv is to record: samples, of which it takes the median and the interval; NaN where n/a."""
    samples = values.get(key, [])
    if isinstance(samples, str):
        raise RuntimeError(samples)
    return {"samples": samples, "number": 1} if len(samples) > 1 else samples[0] if samples else math.nan


def shared(unit: str) -> Any:
    """Mark a benchmark as one that looks up what ``measure_commit`` measured, in ``unit``."""

    def mark(function: Any) -> Any:
        function.setup_cache, function.unit = measure_commit, unit
        return function

    return mark


# -------------------------------------------------------------------------------------------------- what asv discovers


class _Series:
    """The four series that every cell has. ``place`` says which family and depth a benchmark's parameters mean."""

    version = VERSION
    timeout = 300
    rounds, number, warmup_time, repeat = 1, 1, 0.02, (5, 30, 0.5)

    def place(self, *where: Any) -> tuple[str, str, int]:
        raise NotImplementedError

    def setup(self, *given: Any) -> None:
        """Build what ``time_step`` times; the other benchmarks, which are given the shared values first, need nothing.

        asv calls this before every timed call, so that ``number`` must be 1; steps take long enough for that."""
        if given and isinstance(given[0], dict):
            return
        cell = self.place(*given)
        if ONLY and "|".join(map(str, cell)) not in ONLY:
            raise Lacking("not in this selection")
        steps(*cell)

    def teardown(self, *given: Any) -> None:
        """Undo what a step changed, not timed. asv calls this after a skipped or failed ``setup`` as well."""
        if steps.cache_info().currsize:
            steps(*self.place(*given)).work.restore()

    def time_step(self, *where: Any) -> None:
        steps(*self.place(*where)).work.step()

    @shared("time / floor")
    def track_slowdown(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("slowdown", *self.place(*where)))

    @shared("bytes")
    def track_peak_bytes(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("peak_bytes", *self.place(*where)))

    @shared("bytes")
    def track_saved_bytes(self, values: Any, *where: Any) -> Any:
        return look_up(values, ("saved_bytes", *self.place(*where)))


if CORE and FAMILIES:

    class Families(_Series):
        """Every core block in every family, at one depth."""

        params = (CORE, FAMILIES)
        param_names = ("block", "family")

        def place(self, *where: Any) -> tuple[str, str, int]:
            block, family = where
            return block, family, FAMILY_DEPTH


if CORE:

    class Depths(_Series):
        """Every core block in dense stacks of growing depth: what it costs there, and whether it trains."""

        params = (CORE, DEPTHS)
        param_names = ("block", "depth")

        def place(self, *where: Any) -> tuple[str, str, int]:
            block, depth = where
            return block, "dense", depth

        @shared("log10(loss / 1e-6 nat)")
        def track_log_loss(self, values: Any, *where: Any) -> Any:
            return look_up(values, ("log_loss", *self.place(*where)))

        @shared("steps")
        def track_steps_to_threshold(self, values: Any, *where: Any) -> Any:
            return look_up(values, ("steps_to_threshold", *self.place(*where)))


if OTHERS:

    class Others(_Series):
        """A block that is not core: one family, one depth."""

        params = (OTHERS,)
        param_names = ("block",)

        def place(self, *where: Any) -> tuple[str, str, int]:
            (block,) = where
            return block, "dense", OTHER_DEPTH
