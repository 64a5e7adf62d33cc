"""About an advice: its request in plain values, sentences on its data and its memory, and how a connection is built in
the user's own network."""

from __future__ import annotations

import re
from typing import Any, Final

import torch

from highway_bench.blocks import blocks
from highway_bench.blocks.base import PUBLISHED
from highway_bench.families.seeding import seeded
from highway_bench.plan.settings import DENSE, LANGUAGE
from highway_bench.provenance.free_memory import gib
from highway_bench.report.format import listed, three
from highway_bench.studies.advice.before_training import Fit
from highway_bench.studies.advice.own_code import modules_of
from highway_bench.studies.advice.request import AdviceRequest, Connection

SCALED_BRANCH: Final = "last map ÷ √L"
"""How a block describes its start that divides the last map of H."""


def about(request: AdviceRequest, fitted: Fit) -> dict[str, Any]:
    """The request in plain values, with the ``joins`` (connections, L) of a network, and the ``bytes`` of a training
    step of pre-norm; ``usual_steps`` are those with which ``decide`` trains on such data."""
    same = ("depth", "width", "batch_size", "minutes", "loss", "optimiser", "chance_loss", "device", "repetition")
    return {
        "layer": request.family.name,
        "kind": request.family.kind,
        "joins": request.depth * len(request.family.sublayers),
        "data": str(request.data),
        "usual_steps": (LANGUAGE if request.data.dataset.target_kind == "token" else DENSE).recipe["steps"],
        **{name: getattr(request, name) for name in same},
        **fitted._asdict(),
    }


def notes_on(request: AdviceRequest, fitted: Fit, timed_depth: int) -> list[str]:
    """Sentences on the data, the memory and the depth of timed networks."""
    reads = f": {request.data.note}" if request.data.note else ""
    optimiser = {"sgd": "SGD with momentum", "adamw": "AdamW"}[request.optimiser]
    notes = [*request.remarks, f"Trained on {request.data} with {optimiser}{reads}."]
    notes.append(f"A training step of pre-norm needs about {gib(fitted.bytes)}.")
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


def is_fixed_factor(family: str, block: str, text: str) -> bool:
    """Whether a start with this description multiplies the branch by a constant instead of scaling its last map: in a
    family whose maps the package does not initialise, ``bilstm`` or a factory ``module:factory``."""
    return (family == "bilstm" or ":" in family) and (text == SCALED_BRANCH or block == "deepnorm")


def start_about(connection: Connection) -> str:
    """How a connection begins, as its block describes it."""
    return next(start.about for start in blocks.get(connection.block).starts if start.name == connection.start)


def start_in(layer: str, connection: Connection) -> str:
    """How a connection begins in ``layer``. Where the package does not initialise the layer's maps, a start that scales
    some is a factor on each branch."""
    text = start_about(connection)
    factor = re.search("[÷×].*", text)
    if factor is not None and is_fixed_factor(layer, connection.block, text):
        return f"each branch H(x) {factor.group()} (a constant factor on the branch)"
    return "the usual weights" if text == PUBLISHED.about else text


def building(layer: str, connection: Connection, rate: float | None) -> str:
    """How a connection is built in ``layer``, with its learning rate: its equation, without the clause on the maps of H
    where its start is a factor on each branch, and its start."""
    equation = blocks.get(connection.block).equation
    if is_fixed_factor(layer, connection.block, start_about(connection)):
        equation = re.sub(", the maps of H .*", "", equation)
    return f"{connection}: {equation}; start: {start_in(layer, connection)}; learning rate {three(rate)}"
