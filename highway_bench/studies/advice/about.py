"""About an advice: its request in plain values, and sentences on its data and its memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from highway_bench.cell import Cell
from highway_bench.families.seeding import seeded
from highway_bench.provenance.free_memory import gib
from highway_bench.report.format import listed
from highway_bench.studies.advice.connections import Connection
from highway_bench.studies.advice.fit import Fit
from highway_bench.studies.advice.joinable import modules_of
from highway_bench.studies.advice.request import AdviceRequest


def notes_on(request: AdviceRequest, fitted: Fit, timed_depth: int) -> list[str]:
    """Sentences on the data, the memory and the depth of timed networks."""
    reads = f": {request.data.note}" if request.data.note else ""
    optimiser = {"sgd": "SGD with momentum", "adamw": "AdamW"}[request.optimiser]
    notes = [*request.remarks, f"Trained on {request.data} with {optimiser}{reads}."]
    notes.append(f"A training step of pre-norm needs about {gib(fitted.need.at(request.depth))}.")
    if timed_depth != request.depth:
        notes.append(
            f"Steps were timed and bytes counted at depth {timed_depth}: at {request.depth} it takes too long."
        )
    if norms := own_norms(request):
        notes.append(
            f"The layer has a norm module of its own ({listed(norms)}). If that comes first, residual with this layer "
            "is what is often called pre-norm, and pre-norm has two norms."
        )
    if request.loss is not None:
        notes.append(f"The loss is {request.loss}; the best constant prediction has {request.chance_loss:.3g}.")
    return notes


def own_norms(request: AdviceRequest) -> list[str]:
    """The kinds of norms in a layer of the user's own, by the names of their classes."""
    if ":" not in request.family.name:
        return []
    with torch.device("cpu"), seeded(0):
        parts = [part for module in modules_of(request.family, request.width) for part in module.modules()]
    names = {type(part).__name__ for part in parts}
    return sorted(name for name in names if "norm" in name.lower() and not name.startswith("_"))  # no weight norm


def other_rate_note(one: Connection, runs: Sequence[Cell], again: Sequence[Cell], diverged: int) -> str:
    """A sentence on a finalist that is judged by ``again``, and not by ``runs``, of which some ``diverged``."""
    before, now = (f"{cells[0].recipe['rate']:.3g}" for cells in (runs, again))
    worse = f"diverged at {diverged} of {len(runs)} seeds" if diverged else "had a higher loss"
    return f"{one} is judged with the learning rate {now}: with {before}, the better one in the last rung, it {worse}."


def no_time_notes(connections: Sequence[Connection]) -> list[str]:
    """A sentence on the finalists that are behind and did not train at their other rate; none without such."""
    if not connections:
        return []
    names, each = listed([str(one) for one in connections]), " of each" if len(connections) > 1 else ""
    return [f"There was no time to train {names} with the next best learning rate{each}, which may be the better one."]


def about(request: AdviceRequest, fitted: Fit) -> dict[str, Any]:
    """The request in plain values, with the ``joins`` (connections, L) of a network, and the ``bytes`` of a training
    step of pre-norm."""
    return {
        "layer": request.family.name,
        "kind": request.family.kind,
        "depth": request.depth,
        "joins": request.depth * len(request.family.sublayers),
        "width": request.width,
        "batch_size": request.batch_size,
        "minutes": request.minutes,
        "data": str(request.data),
        "loss": request.loss,
        "optimiser": request.optimiser,
        "chance_loss": request.chance_loss,
        "device": request.device,
        "repetition": request.repetition,
        "bytes": fitted.need.at(request.depth),
        "workers": fitted.workers,
    }
