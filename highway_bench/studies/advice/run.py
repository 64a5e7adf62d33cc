"""``advise``: measures what an advice needs, step by step, within its minutes, and concludes."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress import NotebookOutput, in_notebook, showing_progress, stderr_console
from highway_bench.families import AnyLayer
from highway_bench.options import with_near_names
from highway_bench.plan.plan import AnyPath
from highway_bench.plugins import load_plugins
from highway_bench.provenance.free_memory import gib, worker_bytes
from highway_bench.provenance.machine import cores
from highway_bench.report.format import counted
from highway_bench.results.store import Store
from highway_bench.studies.advice.about import about, notes_on
from highway_bench.studies.advice.answer import Advice, ConnectionResult, Learning, learning_of, ordered, unfit
from highway_bench.studies.advice.before_training import (
    Cost,
    Fit,
    at_start,
    block_costs,
    cost_cells,
    fit,
    start_cells,
)
from highway_bench.studies.advice.budget import HalvingPlan, Pace, TimingPlan, halving_plan, timing_plan
from highway_bench.studies.advice.finals import FinalRuns, judged
from highway_bench.studies.advice.halving import Halving
from highway_bench.studies.advice.measured import Decisions, MeasuredCells
from highway_bench.studies.advice.options import ADVICES, with_advice_options
from highway_bench.studies.advice.page import write_page
from highway_bench.studies.advice.request import AdviceRequest, Connection, requested
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.tasks.predicted_costs import exceeding
from highway_bench.terminal import prints_to_stderr

PACE_STEPS: Final = 6


@with_near_names
@with_advice_options
def advise(
    layer: AnyLayer,
    *,
    depth: int,
    minutes: float = 10.0,
    out: AnyPath = ADVICES,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    progress: bool | None = None,
    command: Sequence[str] | None = None,
    **options: Any,
) -> Advice:
    """Which connection to use for ``layer`` at ``depth``, with what it costs and how sure that is.

    ``layer`` is a function from a width to a module (or to several modules, each with a connection of its own), its
    name ``module:factory`` or ``FILE.py:factory``, or a family or its name. Every connection and start that it
    can carry is compared, or those of the blocks that match ``block``; always pre-norm. ``data`` is the name of a data
    set, whose options are ``data_options``, or of a text file; or data of the user's own, or their name
    ``module:NAME``: see ``highway_bench.data.read_own``, for ``target`` too. ``loss`` is a function of outputs and
    targets, or ``module:function``. A block may be its class.

    The measurements take about ``minutes`` and are stored in a folder in ``out``, where the page is too. What was
    decided from measured times is stored as well, so the same call gives the same answer without measuring again, and
    goes on after an interruption. Progress is shown by default in a notebook.

    Raises ``BadInput``, in one line and before anything is measured, for a layer, data or sizes that cannot be used.

    >>> hb.advise("transformer", depth=12, minutes=10).headline
    """
    began = time.monotonic()
    modules, request, fitted = prepared(layer, plugins, workers, depth=depth, minutes=minutes, **options)
    folder, console = Path(out) / request.name, stderr_console()
    shows = in_notebook() if progress is None else progress
    shown = showing_progress(None if in_notebook() else console) if shows else nullcontext()
    with Store(folder / "store.sqlite") as store, shown as on_event:
        printed = partial(console.print, highlight=False, markup=False)
        say = on_event.say if isinstance(on_event, NotebookOutput) else printed
        on_stage = partial(say_stage, say, began, minutes) if shows else lambda what: None
        measured = MeasuredCells(store, modules, engine, fitted.workers, on_event, on_stage, command)
        work = AdviceWork(request, fitted, measured, Decisions(folder / "decisions.json"), began)
        return write_page(work.advice(folder), folder, store)


def prepared(
    layer: AnyLayer, plugins: Sequence[str], workers: int | None, **words: Any
) -> tuple[tuple[str, ...], AdviceRequest, Fit]:
    """The modules of ``plugins``, the request of ``words`` for ``layer``, which was tried with each connection, and how
    it fits memory."""
    modules = load_plugins(plugins)
    request = requested(layer, **words)
    request.preflight(modules)
    with prints_to_stderr():
        return modules, request, fit(request, workers or cores())


def say_stage(say: Callable[[str], None], began: float, minutes: float, what: str) -> None:
    """Say what is measured next, and how much of the time has passed."""
    passed = (time.monotonic() - began) / 60
    say(f"{what}, after {passed:.1f} of {minutes:g} min")


@dataclass(frozen=True)
class AdviceWork:
    """The work of one advice. Each step is measured, or read from the store, when the next one needs it."""

    request: AdviceRequest
    fit: Fit
    measured: MeasuredCells
    decisions: Decisions
    began: float

    def advice(self, folder: Path) -> Advice:
        """Measure all that the advice needs, and conclude."""
        pace = Pace(**self.decisions.once("pace", self.decide_pace))
        timing, costs = self.costs(pace)
        plan = self.decisions.once("halving", lambda: self.decide_halving(pace, costs))
        connections = [Connection(*one) for one in plan["connections"]]
        starts = {one: start_cells(self.request, one) for one in connections}
        self.measured.measure([cell for cells in starts.values() for cell in cells], "signal and gradient at the start")
        rungs = HalvingPlan(len(connections), plan["steps"], plan["rungs"], plan["seeds"], plan["kept"])
        halving = Halving(self.request, connections, rungs, self.measured)
        while cells := halving.pending():
            self.measured.measure(cells, f"trainings of {cells[0].recipe['steps']:,} of {rungs.ladder[-1]:,} steps")
        runs, notes = FinalRuns(halving, self.fit.workers, self.decisions, pace, self.began).measure()
        longest = {one: runs.get(one) or halving.longest_runs(one) for one in connections}
        results = [
            self.result(one, longest[one], costs[one.block], at_start(starts[one], self.measured))
            for one in connections
        ]
        for one in self.request.connections:
            if reason := plan["left_out"].get(" ".join(one)):
                width, cost = self.request.widths[one.block], costs[one.block]
                results.append(ConnectionResult(one, width, Learning.LEFT_OUT, cost, reason=reason))
        losses = {one: self.measured.losses(cells) for one, cells in runs.items()}
        failures = list(self.measured.failures.values())
        if failures:
            notes.append(f"{counted(len(failures), 'measurement')} failed, the first: {failures[0]}.")
        return Advice(
            about=about(self.request, self.fit),
            results=ordered(results),
            quality=judged(losses, unfit(losses, results)),
            finalists=list(runs),
            ladder=rungs.ladder,
            timed_depth=timing.depth,
            notes=[*notes_on(self.request, self.fit, timing.depth), *notes],
            store=folder / "store.sqlite",
            failed=len(failures),
        )

    def decide_pace(self) -> dict[str, float]:
        """Measure the pace while every worker trains pre-norm, with two runs in each: the first one also loads the
        data.

        Runs that are stored do not count: a call that was interrupted has some, and a pace that was too slow all.
        Raises ``BadInput`` where not even two connections as fast as pre-norm fit the minutes.
        """
        runs = 2 * self.fit.workers
        for attempt in itertools.count():
            began = time.monotonic()
            cells = [self.paced(self.request.connections[0], attempt * runs + number) for number in range(runs)]
            self.measured.measure(cells, "time of a training step")
            if all(cell in self.measured.seconds or cell in self.measured.failures for cell in cells):
                break
        steps = self.measured.values(cells, "step_seconds")
        if not steps:
            reason = self.measured.failures.get(cells[0], "no step ended")
            raise BadInput(f"{self.request.connections[0]} cannot be trained: {reason}")
        step = median(steps)
        whole = [self.measured.seconds[cell] for cell in cells if cell in self.measured.seconds]
        start = time.monotonic() - began - math.fsum(whole) / self.fit.workers
        pace = Pace(step, max(0.0, min(whole, default=0.0) - PACE_STEPS * step), max(0.0, start))
        halving_plan(self.request.minutes, self.fit.workers, [1.0, 1.0], pace, self.request.steps)
        return asdict(pace)

    def paced(self, connection: Connection, seed: int) -> Cell:
        """A training of a few steps."""
        return self.request.run(connection, PACE_STEPS, self.request.first_rates[-1], seed)

    def costs(self, pace: Pace) -> tuple[TimingPlan, dict[str, Cost]]:
        """The costs of each block, and how they were timed."""
        request = self.request

        def decide() -> dict[str, Any]:
            return asdict(timing_plan(request.minutes, request.depth, len(request.widths), pace))

        plan = TimingPlan(**self.decisions.once("timing", decide))
        cells = cost_cells(request, plan)
        self.measured.measure([*cells["memory"], *cells["throughput"]], "step times and bytes of every connection")
        return plan, block_costs(cells, self.measured)

    def decide_halving(self, pace: Pace, costs: Mapping[str, Cost]) -> dict[str, Any]:
        """Which connections fit memory and time, for how many steps; and why the others are left out."""
        left_out: dict[str, str] = {}
        fits: list[Connection] = []
        available = worker_bytes(self.request.device, self.fit.workers)
        for one in self.request.connections:
            # ``fit`` has found that pre-norm fits, whatever is free by now.
            need = None if one.block == REFERENCE else exceeding(self.paced(one, 0), available)
            if need is not None:
                left_out[" ".join(one)] = f"it needs about {gib(need)}, and a worker may use {gib(available)}"
            else:
                fits.append(one)
        known = {block: cost.step.value for block, cost in costs.items() if not math.isnan(cost.step.value)}
        ratios = [known.get(one.block, 1.0) for one in fits]
        try:
            plan = halving_plan(self.request.minutes, self.fit.workers, ratios, pace, self.request.steps)
        except BadInput:
            self.decisions.forget("pace", "timing")  # the machine may have been busy: the same command measures again
            raise
        reason = f"no time: {plan.connections} connections fit {self.request.minutes:g} minutes"
        left_out |= {" ".join(one): reason for one in fits[plan.connections :]}
        return asdict(plan) | {"connections": [list(one) for one in fits[: plan.connections]], "left_out": left_out}

    def result(self, connection: Connection, cells: Sequence[Cell], cost: Cost, start: str | None) -> ConnectionResult:
        """What was measured of one connection; ``cells`` are its longest runs."""
        losses, ended = self.measured.losses(cells), self.measured.values(cells, "final_loss")
        tests, succeeded = self.measured.values(cells, "test_accuracy"), self.measured.values(cells, "success").count(1)
        reasons = [self.measured.failures[cell] for cell in cells if cell in self.measured.failures]
        learning = learning_of(losses, succeeded, self.request.chance_loss)
        return ConnectionResult(
            connection,
            self.request.widths[connection.block],
            Learning.ERROR if reasons else learning,  # a run that failed says nothing about its network
            cost,
            steps=int(cells[0].recipe["steps"]),
            rate=float(cells[0].recipe["rate"]),
            loss=fmean(ended) if len(ended) == len(losses) else None,
            runs=len(cells),
            succeeded=succeeded,
            test_accuracy=fmean(tests) if tests else None,
            reason=reasons[0] if reasons else None,
            at_start=start,
        )
