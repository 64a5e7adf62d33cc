"""The work of an advice: what it measures, step by step, and how these steps share its minutes."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from highway_bench.errors import BadInput
from highway_bench.provenance.free_memory import gib, worker_bytes
from highway_bench.studies.advice.about import about, notes_on
from highway_bench.studies.advice.answer import Advice, ConnectionResult, ordered, unfit
from highway_bench.studies.advice.at_start import at_start, start_cells
from highway_bench.studies.advice.budget import HalvingPlan, Pace, TimingPlan, halving_plan, timing_plan
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.costs import RelativeCost, block_costs, cost_cells
from highway_bench.studies.advice.final_runs import FinalCells, FinalRuns
from highway_bench.studies.advice.finals import judged
from highway_bench.studies.advice.fit import Fit
from highway_bench.studies.advice.halving import Halving
from highway_bench.studies.advice.learning import Learning, learning_of
from highway_bench.studies.advice.measured import MeasuredCells
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.studies.advice.stored import Decisions
from highway_bench.studies.decide.candidate import REFERENCE
from highway_bench.tasks.predicted_costs import exceeding

PACE_STEPS: Final = 6


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
        pace = self.pace()
        timing, costs = self.costs(pace)
        plan = self.decisions.once("halving", lambda: self.decide_halving(pace, costs))
        connections = [Connection(*one) for one in plan["connections"]]
        starts = {one: start_cells(self.request, one) for one in connections}
        self.measured.measure([cell for cells in starts.values() for cell in cells], "signal and gradient at the start")
        rungs = HalvingPlan(len(connections), plan["steps"], plan["rungs"], plan["seeds"], plan["kept"])
        halving = Halving(self.request, connections, rungs, self.measured)
        while cells := halving.pending():
            self.measured.measure(cells, f"trainings of {cells[0].recipe['steps']:,} of {rungs.ladder[-1]:,} steps")
        finals = FinalRuns(self.request, self.fit, self.measured, self.decisions, halving, pace, self.began)
        runs, rate_notes = finals.measure()
        results = [
            replace(self.result(one, halving, costs, runs), at_start=at_start(starts[one], self.measured))
            for one in connections
        ]
        results += self.not_trained(plan["left_out"], costs)
        losses = {one: [self.measured.value(cell, "final_loss") for cell in cells] for one, cells in runs.items()}
        return Advice(
            about=about(self.request, self.fit),
            results=ordered(results),
            quality=judged(losses, unfit(losses, results)),
            finalists=list(runs),
            ladder=halving.plan.ladder,
            timed_depth=timing.depth,
            notes=[
                *notes_on(self.request, self.fit, timing.depth),
                *rate_notes,
                *self.measured.notes_on_failures(),
            ],
            store=folder / "store.sqlite",
            failed=len(self.measured.failures),
        )

    def not_trained(self, reasons: Mapping[str, str], costs: Mapping[str, RelativeCost]) -> list[ConnectionResult]:
        """The connections that were left out, by the ``reasons`` of their names."""
        out = [(one, reasons[name]) for one in self.request.connections if (name := " ".join(one)) in reasons]
        return [
            ConnectionResult(one, self.request.widths[one.block], Learning.LEFT_OUT, costs[one.block], reason=reason)
            for one, reason in out
        ]

    def pace(self) -> Pace:
        """The seconds of a training step of pre-norm while every worker trains."""
        return Pace(**self.decisions.once("pace", self.decide_pace))

    def decide_pace(self) -> dict[str, float]:
        """Measure the pace, with two runs in each worker: the first one also loads the data.

        Runs that are stored do not count: a call that was interrupted has some, and a pace that was too slow all.
        Raises ``BadInput`` where not even two connections as fast as pre-norm fit the minutes.
        """
        first, runs = self.request.connections[0], 2 * self.fit.workers
        for attempt in itertools.count():
            seeds, began = range(attempt * runs, (attempt + 1) * runs), time.monotonic()
            cells = [self.request.run(first, PACE_STEPS, self.request.first_rates[-1], seed) for seed in seeds]
            self.measured.measure(cells, "time of a training step")
            if all(cell in self.measured.seconds or cell in self.measured.failures for cell in cells):
                break
        steps = [value for cell in cells if (value := self.measured.value(cell, "step_seconds")) is not None]
        if not steps:
            raise BadInput(f"{first} cannot be trained: {self.measured.failures.get(cells[0], 'no step ended')}")
        step = median(steps)
        whole = [self.measured.seconds[cell] for cell in cells if cell in self.measured.seconds]
        start = time.monotonic() - began - math.fsum(whole) / self.fit.workers
        pace = Pace(step, max(0.0, min(whole, default=0.0) - PACE_STEPS * step), max(0.0, start))
        halving_plan(self.request.minutes, self.fit.workers, [1.0, 1.0], pace, self.request.steps)
        return asdict(pace)

    def costs(self, pace: Pace) -> tuple[TimingPlan, dict[str, RelativeCost]]:
        """The costs of each block, and how they were timed."""
        request, names = self.request, list(self.request.widths)
        plan = TimingPlan(
            **self.decisions.once(
                "timing", lambda: asdict(timing_plan(request.minutes, request.depth, len(names), pace))
            )
        )
        cells = cost_cells(request, names, plan)
        self.measured.measure([*cells["memory"], *cells["throughput"]], "step times and bytes of every connection")
        return plan, block_costs(cells, self.measured)

    def decide_halving(self, pace: Pace, costs: Mapping[str, RelativeCost]) -> dict[str, Any]:
        """Which connections fit memory and time, for how many steps; and why the others are left out."""
        left_out: dict[str, str] = {}
        fits: list[Connection] = []
        available = worker_bytes(self.request.device, self.fit.workers)
        for one in self.request.connections:
            cell = self.request.run(one, PACE_STEPS, self.request.first_rates[-1], 0)
            # ``fit`` has found that pre-norm fits, whatever is free by now.
            need = None if one.block == REFERENCE else exceeding(cell, available)
            if need is not None:
                left_out[" ".join(one)] = f"it needs about {gib(need)}, and a worker may use {gib(available)}"
            else:
                fits.append(one)
        ratios = [costs[one.block].likely for one in fits]
        try:
            plan = halving_plan(self.request.minutes, self.fit.workers, ratios, pace, self.request.steps)
        except BadInput:
            self.decisions.forget("pace", "timing")  # the machine may have been busy: the same command measures again
            raise
        reason = f"no time: {plan.connections} connections fit {self.request.minutes:g} minutes"
        left_out |= {" ".join(one): reason for one in fits[plan.connections :]}
        return {
            "connections": [list(one) for one in fits[: plan.connections]],
            "steps": plan.steps,
            "rungs": plan.rungs,
            "seeds": plan.seeds,
            "kept": plan.kept,
            "left_out": left_out,
        }

    def result(
        self,
        connection: Connection,
        halving: Halving,
        costs: Mapping[str, RelativeCost],
        finals: FinalCells,
    ) -> ConnectionResult:
        """What was measured of one connection that was trained."""
        rung = halving.last_rung(connection)
        rate, _ = halving.best(rung, connection)
        cells = finals.get(connection) or halving.cells(rung, connection, rate)
        values = [self.measured.value(cell, "final_loss") for cell in cells]
        finite = [value for value in values if value is not None]
        succeeded = sum(self.measured.value(cell, "success") == 1 for cell in cells)
        tests = [value for cell in cells if (value := self.measured.value(cell, "test_accuracy")) is not None]
        learning = learning_of(values, succeeded, self.request.chance_loss)
        reasons = [self.measured.failures[cell] for cell in cells if cell in self.measured.failures]
        if reasons:  # a run that failed says nothing about its network
            learning = Learning.FAILED
        return ConnectionResult(
            connection,
            self.request.widths[connection.block],
            learning,
            costs[connection.block],
            steps=int(cells[0].recipe["steps"]),
            rate=float(cells[0].recipe["rate"]),
            loss=fmean(finite) if len(finite) == len(values) else None,
            runs=len(cells),
            succeeded=succeeded,
            accuracy=fmean(tests) if tests else None,
            reason=reasons[0] if reasons else "",
        )
