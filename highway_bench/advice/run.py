"""``advise``: measures what an advice needs, within its minutes, and concludes."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final

from highway_bench.advice.answer import Advice, ConnectionResult, Learning, learning_of, ordered
from highway_bench.advice.budget import (
    FINALS,
    HalvingPlan,
    Pace,
    TimingPlan,
    halving_plan,
    seeds_that_fit,
    timing_plan,
)
from highway_bench.advice.connections import REFERENCE, Connection
from highway_bench.advice.costs import RelativeCost, block_costs, cost_cells
from highway_bench.advice.finals import judged
from highway_bench.advice.fit import USABLE, MemoryNeed, free_bytes, gib, memory_need, workers_that_fit
from highway_bench.advice.halving import Halving
from highway_bench.advice.measured import MeasuredCells
from highway_bench.advice.page import write_page
from highway_bench.advice.request import AdviceRequest, AnyLayer, requested
from highway_bench.advice.stored import Decisions
from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.execution.engines import AnyEngine
from highway_bench.execution.progress_bar import showing_progress
from highway_bench.plan.plan import AnyPath
from highway_bench.plugins import load_plugins
from highway_bench.provenance.machine import cores
from highway_bench.results.store import Store

OUT: Final = Path("reports/advice")
PACE_STEPS: Final = 6
LEAST_FINALS: Final = 0.2  # share of the time that the finals have, even where the rungs took longer than predicted
WHOLE: Final = 0.97  # share of the time at which the finals are to end


def advise(
    layer: AnyLayer,
    *,
    depth: int,
    minutes: float = 10.0,
    data: str | None = None,
    loss: str | None = None,
    width: int | None = None,
    batch_size: int | None = None,
    block: Sequence[str] = (),
    family_options: Mapping[str, Any] | None = None,
    device: str | None = None,
    repetition: int = 0,
    out: AnyPath = OUT,
    plugins: Sequence[str] = (),
    engine: AnyEngine = "local",
    workers: int | None = None,
    progress: bool = False,
    command: Sequence[str] | None = None,
) -> Advice:
    """Which connection to use for ``layer`` at ``depth``, with what it costs and how sure that is.

    ``layer`` is a factory, a function from a width to a module (or to several modules, each with a connection of its
    own), its name ``module:factory``, or a family or its name. Every connection and start that it can carry is
    compared, or those of the blocks that match ``block``; always pre-norm. ``data`` is the name of a data set, a text
    file, or ``module:batches``, a function that yields batches (x, y); ``loss`` is ``module:function`` of outputs and
    targets. ``repetition`` changes the seeds.

    The measurements take about ``minutes`` and are stored in a folder in ``out``, where the page is too. What was
    decided from measured times is stored as well, so the same call gives the same answer without measuring again, and
    goes on after an interruption. In a script, call it under ``if __name__ == "__main__":``. Raises ``BadInput``, in
    one line and before anything is measured, for a layer, data or sizes that cannot be used.

    >>> hb.advise("transformer", depth=12, minutes=10).headline
    """
    began = time.monotonic()
    modules = load_plugins(plugins)
    request = requested(
        layer,
        depth=depth,
        minutes=minutes,
        data=data,
        loss=loss,
        width=width,
        batch_size=batch_size,
        block=block,
        family_options=family_options,
        device=device,
        repetition=repetition,
        out=Path(out),
    )
    fitted = fit(request, workers or cores())
    folder = Path(out) / request.name
    with Store(folder / "store.sqlite") as store, showing_progress() if progress else nullcontext() as on_event:
        measured = MeasuredCells(
            store,
            plugins=(*modules, *request.plugins),
            engine=engine,
            workers=fitted.workers,
            on_event=on_event,
            command=command,
        )
        work = AdviceWork(request, fitted, measured, Decisions(folder / "decisions.json"), began)
        advice = work.advice(folder)
        return write_page(advice, folder, store)


@dataclass(frozen=True)
class Fit:
    """What a training step needs of the memory, and how many workers can train at the same time."""

    need: MemoryNeed
    workers: int


def fit(request: AdviceRequest, workers: int) -> Fit:
    """The fit of ``request``; raises ``BadInput`` for a depth that does not fit memory."""
    need = memory_need(request.run(request.connections[0], 2, request.first_rates[-1], 0))
    return Fit(need, workers_that_fit(need, request.depth, workers, request.device))


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
        steps = HalvingPlan(len(connections), plan["steps"], plan["rungs"], plan["seeds"])
        halving = Halving(self.request, connections, steps, self.measured)
        while cells := halving.pending():
            self.measured.measure(cells)
        finals = self.decisions.once("finals", lambda: self.decide_finals(halving, pace))
        runs = self.finals(finals, halving)
        results = [self.result(one, halving, costs, runs) for one in connections]
        results += [
            ConnectionResult(
                one, self.request.widths[one.block], Learning.LEFT_OUT, costs[one.block], reason=plan["left_out"][name]
            )
            for one in self.request.connections
            if (name := " ".join(one)) in plan["left_out"]
        ]
        losses = {one: [self.measured.value(cell, "final_loss") for cell in cells] for one, cells in runs.items()}
        return Advice(
            about=about(self.request, self.fit),
            results=ordered(results),
            quality=judged(losses),
            finalists=list(runs),
            ladder=halving.plan.ladder,
            timed_depth=timing.depth,
            notes=notes_on(self.request, self.fit, timing.depth),
            store=folder / "store.sqlite",
            study=halving.study(),
        )

    def pace(self) -> Pace:
        """The seconds of a training step of pre-norm while every worker trains."""
        return Pace(**self.decisions.once("pace", self.decide_pace))

    def decide_pace(self) -> dict[str, float]:
        """Measure the pace, with two runs in each worker: the first one also loads the data."""
        first = self.request.connections[0]
        seeds, began = range(2 * self.fit.workers), time.monotonic()
        cells = [self.request.run(first, PACE_STEPS, self.request.first_rates[-1], seed) for seed in seeds]
        self.measured.measure(cells)
        steps = [value for cell in cells if (value := self.measured.value(cell, "step_seconds")) is not None]
        if not steps:
            raise BadInput(f"{first} cannot be trained: {self.measured.failures.get(cells[0], 'no step ended')}")
        step = median(steps)
        whole = [self.measured.seconds[cell] for cell in cells if cell in self.measured.seconds]
        start = time.monotonic() - began - math.fsum(whole) / self.fit.workers
        return {"step": step, "setup": max(0.0, min(whole, default=0.0) - PACE_STEPS * step), "start": max(0.0, start)}

    def costs(self, pace: Pace) -> tuple[TimingPlan, dict[str, RelativeCost]]:
        """The costs of each block, and how they were timed."""
        request, names = self.request, list(self.request.widths)
        plan = TimingPlan(
            **self.decisions.once(
                "timing", lambda: asdict(timing_plan(request.minutes, request.depth, len(names), pace))
            )
        )
        cells = cost_cells(request, names, plan)
        self.measured.measure([*cells["memory"], *cells["throughput"]])
        return plan, block_costs(cells, self.measured)

    def decide_halving(self, pace: Pace, costs: Mapping[str, RelativeCost]) -> dict[str, Any]:
        """Which connections fit memory and time, for how many steps; and why the others are left out."""
        left_out: dict[str, str] = {}
        fits: list[Connection] = []
        available = USABLE * free_bytes(self.request.device) / self.fit.workers
        saved = costs[REFERENCE].saved
        for one in self.request.connections:
            share = costs[one.block].saved / saved
            need = self.fit.need.at(self.request.depth) * (share if math.isfinite(share) else 1.0)
            if need > available:
                left_out[" ".join(one)] = f"it needs about {gib(need)}, and {gib(available)} a worker are free"
            else:
                fits.append(one)
        ratios = [costs[one.block].likely for one in fits]
        plan = halving_plan(self.request.minutes, self.fit.workers, ratios, pace)
        reason = f"no time: {plan.connections} connections fit {self.request.minutes:g} minutes"
        left_out |= {" ".join(one): reason for one in fits[plan.connections :]}
        return {
            "connections": [list(one) for one in fits[: plan.connections]],
            "steps": plan.steps,
            "rungs": plan.rungs,
            "seeds": plan.seeds,
            "left_out": left_out,
        }

    def decide_finals(self, halving: Halving, pace: Pace) -> dict[str, Any]:
        """Who is in the finals, at which learning rate, and with how many seeds."""
        finalists, rung = halving.finalists(), halving.plan.rungs - 1
        rates = [halving.best(rung, one)[0] for one in finalists]
        seconds = []
        for one, rate in zip(finalists, rates, strict=True):
            step = self.measured.value(halving.cells(rung, one, rate)[0], "step_seconds") or pace.step
            seconds.append(step * (halving.plan.ladder[-1] + self.evaluation_steps()) + pace.setup)
        minutes = self.request.minutes
        left = 60 * minutes * WHOLE - (time.monotonic() - self.began)
        share = max(60 * minutes * LEAST_FINALS, min(60 * minutes * FINALS, left))
        count, seeds = seeds_that_fit(share, self.fit.workers, seconds, pace.start)
        return {"connections": [list(one) for one in finalists[:count]], "rates": rates[:count], "seeds": seeds}

    def evaluation_steps(self) -> float:
        """What testing a network takes, in training steps: a forward pass is a third of one."""
        data = self.request.data.dataset.load(seed=0)
        items = min(len(data.train.inputs), 2_000) + len(data.test.inputs)
        return items / self.request.batch_size / 3

    def finals(self, plan: Mapping[str, Any], halving: Halving) -> dict[Connection, list[Cell]]:
        """Measure the finals: the cells of each finalist, in the order of the seeds."""
        steps, seeds = halving.plan.ladder[-1], self.request.final_seeds(plan["seeds"])
        runs = {
            Connection(*one): [self.request.run(Connection(*one), steps, rate, seed, evaluate="end") for seed in seeds]
            for one, rate in zip(plan["connections"], plan["rates"], strict=True)
        }
        self.measured.measure([cell for together in zip(*runs.values(), strict=True) for cell in together])
        return runs

    def result(
        self,
        connection: Connection,
        halving: Halving,
        costs: Mapping[str, RelativeCost],
        finals: Mapping[Connection, list[Cell]],
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
        if reasons and not finite:
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


def notes_on(request: AdviceRequest, fitted: Fit, timed_depth: int) -> list[str]:
    """Sentences on the data, the memory and the depth of timed networks."""
    reads = f": {request.data.note}" if request.data.note else ""
    notes = [f"Trained on {request.data}{reads}."]
    notes.append(f"A training step of pre-norm needs about {gib(fitted.need.at(request.depth))}.")
    if timed_depth != request.depth:
        notes.append(
            f"Steps were timed and bytes counted at depth {timed_depth}: at {request.depth} it takes too long."
        )
    if request.loss is not None:
        notes.append(f"The loss is {request.loss}; the best constant prediction has {request.chance_loss:.3g}.")
    return notes


def about(request: AdviceRequest, fitted: Fit) -> dict[str, Any]:
    """The request in plain values, with the ``bytes`` of a training step of pre-norm."""
    return {
        "layer": request.family.name,
        "kind": request.family.kind,
        "depth": request.depth,
        "width": request.width,
        "batch_size": request.batch_size,
        "minutes": request.minutes,
        "data": str(request.data),
        "loss": request.loss,
        "chance_loss": request.chance_loss,
        "device": request.device,
        "repetition": request.repetition,
        "bytes": fitted.need.at(request.depth),
        "workers": fitted.workers,
    }
