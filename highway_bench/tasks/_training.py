"""Training one network by a recipe: the batches, the optimiser, the step, and what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from highway_bench.data import Split
from highway_bench.data._base import TargetKind
from highway_bench.errors import BadInput
from highway_bench.measure.clock import synchronise

FINITE_EVERY = 25  # steps between looks at whether the loss is still finite: each look waits for the device
# Words of a cell's recipe that are not the training's own
BESIDE = frozenset({"rates", "threshold", "verdict", "dataset", "layout", "evaluate", "mistakes", "together", "search"})
EVALUATE_AT_MOST = 2_000  # training items on which the final accuracy is taken


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained. The learning rate falls exponentially to ``decay`` times its start over the run."""

    optimiser: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.1
    momentum: float = 0.9
    decay: float = 0.1
    weight_decay: float = 0.0
    epsilon: float = 1e-8  # Adam's
    clip: float | None = None  # largest norm of the whole gradient
    last_batch: Literal["drop", "keep"] = "drop"  # what becomes of an epoch's last batch where it is incomplete
    steps: int = 500

    def __post_init__(self) -> None:
        if self.steps < 1 or not self.rate > 0 or not 0 < self.decay <= 1:
            raise BadInput("a recipe needs steps of at least 1, a rate above 0 and a decay above 0 and at most 1")
        if self.last_batch not in ("drop", "keep"):
            raise BadInput(f"a recipe's last_batch is drop or keep, not {self.last_batch!r}")

    def steps_per_epoch(self, items: int, batch_size: int) -> int:
        """Batches that an epoch over ``items`` has."""
        return items // batch_size if self.last_batch == "drop" else math.ceil(items / batch_size)

    def optimiser_for(self, network: nn.Module) -> torch.optim.Optimizer:
        """The optimiser on all parameters; weight decay spares biases and gains, for it would pull gates open."""
        groups = [
            {"params": [p for p in network.parameters() if p.ndim > 1], "weight_decay": self.weight_decay},
            {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        if self.optimiser == "sgd":
            return torch.optim.SGD(groups, lr=self.rate, momentum=self.momentum, fused=True)
        if self.optimiser == "adam":
            return torch.optim.Adam(groups, lr=self.rate, eps=self.epsilon, fused=True)
        raise BadInput(f"unknown optimiser {self.optimiser!r}; known: sgd, adam")


class Answers(NamedTuple):
    """Loss and accuracy over a split; no accuracy where targets are scalars."""

    loss: float
    accuracy: float | None


@dataclass
class Training:
    """One network being trained on one split. ``step`` is one step, synchronised at its end.

    The batch order comes from ``seed`` alone: whole shuffled epochs, an incomplete last batch dropped or kept as the
    recipe says. Inputs are cast to the network's dtype. ``watched``, where it is given, is evaluated after every epoch,
    outside the clock.
    """

    network: nn.Module
    train: Split
    target_kind: TargetKind
    recipe: Recipe
    batch_size: int
    seed: int
    watched: Split | None = None
    losses: list[Tensor] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # seconds from the first step's start to each step's end
    epochs: list[Answers] = field(default_factory=list)  # of ``watched``, after each epoch

    def __post_init__(self) -> None:
        if self.batch_size > len(self.train.inputs):
            raise BadInput(f"a batch of {self.batch_size} is larger than the {len(self.train.inputs)} training items")
        self.device, self.dtype = place_of(self.network)
        self.optimiser = self.recipe.optimiser_for(self.network)
        factor = self.recipe.decay ** (1 / self.recipe.steps)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimiser, factor)
        self.steps_per_epoch = self.recipe.steps_per_epoch(len(self.train.inputs), self.batch_size)
        self.batches = self._batches()
        self.network.train()

    def _batches(self) -> Iterator[Tensor]:
        order = torch.Generator().manual_seed(self.seed)
        items = len(self.train.inputs)
        while True:
            shuffled = torch.randperm(items, generator=order)
            yield from shuffled.split(self.batch_size)[: self.steps_per_epoch]

    def step(self) -> None:
        """One step: forward, loss, backward, update."""
        batch = next(self.batches).to(self.train.inputs.device)
        inputs, targets = (placed(part[batch], self.device, self.dtype) for part in self.train)
        loss = loss_of(self.network(inputs), targets, self.target_kind)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.optimiser.step()
        self.schedule.step()
        self.losses.append(loss.detach())
        synchronise(self.device)

    def run(self) -> None:
        """Train for the recipe's steps, or until a loss is not finite. What layers draw (dropout) comes from ``seed``;
        the global random state stays as it was."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.seed)
            start = time.perf_counter()
            while len(self.losses) < self.recipe.steps:
                self.step()
                self.times.append(time.perf_counter() - start)
                if len(self.losses) % FINITE_EVERY == 0 and not torch.isfinite(self.losses[-1]):
                    break
                if self.watched is not None and len(self.losses) % self.steps_per_epoch == 0:
                    before = time.perf_counter()
                    self.epochs.append(evaluate(self.network, self.watched, self.target_kind))
                    self.network.train()
                    start += time.perf_counter() - before

    def epoch_losses(self) -> list[float]:
        """Mean training loss of each whole epoch so far, every item counting once: what frameworks print beside an
        epoch, and not the loss of the network at its end."""
        sizes = [self.batch_size] * self.steps_per_epoch
        if self.recipe.last_batch == "keep":
            sizes[-1] = len(self.train.inputs) - self.batch_size * (self.steps_per_epoch - 1)
        weights = torch.tensor(sizes, dtype=torch.float64)
        whole = len(self.losses) // self.steps_per_epoch
        values = torch.tensor(self.history()[: whole * self.steps_per_epoch], dtype=torch.float64)
        return [float((epoch * weights).sum() / weights.sum()) for epoch in values.split(self.steps_per_epoch)
                if len(epoch) == self.steps_per_epoch]

    def history(self) -> list[float]:
        """Losses so far, up to and with the first that is not finite."""
        values = torch.stack(self.losses).double()
        wrong = (~torch.isfinite(values)).nonzero()
        return values[: int(wrong[0]) + 1 if len(wrong) else None].tolist()


def place_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """The device and the dtype of ``network``'s parameters."""
    first = next(network.parameters())
    return first.device, first.dtype


def placed(part: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    """``part`` on ``device``, floating-point numbers in ``dtype``; classes and tokens stay whole numbers."""
    return part.to(device, dtype if part.is_floating_point() else part.dtype, non_blocking=True)


def loss_of(answers: Tensor, targets: Tensor, kind: TargetKind) -> Tensor:
    """Mean cross entropy in nat for classes and tokens (targets of −100 do not count), mean squared error for
    scalars."""
    if kind == "scalar":
        return functional.mse_loss(answers, targets.to(answers.dtype))
    if kind == "token":
        return functional.cross_entropy(answers.flatten(0, 1), targets.flatten(), ignore_index=-100)
    return functional.cross_entropy(answers, targets)


@torch.no_grad()
def evaluate(network: nn.Module, split: Split, kind: TargetKind, *, batch_size: int = 500,
             at_most: int | None = None) -> Answers:
    """Loss and accuracy of ``network`` in evaluation mode on the split, or on its first ``at_most`` items."""
    network.eval()
    device, dtype = place_of(network)
    total, right, asked, items = 0.0, 0, 0, 0
    count = len(split.inputs) if at_most is None else min(at_most, len(split.inputs))
    for start in range(0, count, batch_size):
        inputs, targets = (placed(part[start : min(start + batch_size, count)], device, dtype) for part in split)
        answers = network(inputs)
        total += float(loss_of(answers, targets, kind)) * len(inputs)
        items += len(inputs)
        if kind != "scalar":
            real = targets != -100
            right += int(((answers.argmax(-1) == targets) & real).sum())
            asked += int(real.sum())
    return Answers(total / items, right / asked if asked else None)


@torch.no_grad()
def mistakes(network: nn.Module, split: Split, most: int, *, batch_size: int = 500) -> list[tuple[int, int]]:
    """The first ``most`` items of ``split`` whose class ``network`` gets wrong: (row, the class that it gave)."""
    network.eval()
    device, dtype = place_of(network)
    found: list[tuple[int, int]] = []
    for start in range(0, len(split.inputs), batch_size):
        inputs, targets = (placed(part[start : start + batch_size], device, dtype) for part in split)
        given = network(inputs).argmax(-1)
        wrong = (given != targets).nonzero().flatten().tolist()
        found += [(start + row, int(given[row])) for row in wrong]
        if len(found) >= most:
            break
    return found[:most]


def recipe_from(options: dict[str, Any]) -> Recipe:
    """The training half of a cell's recipe; raises ``BadInput`` for a rate that is still to be tuned."""
    unknown = options.keys() - Recipe.__dataclass_fields__.keys() - BESIDE
    if unknown:
        names = ", ".join([*Recipe.__dataclass_fields__, *sorted(BESIDE)])
        raise BadInput(f"a recipe has no {', '.join(sorted(unknown))}; it has {names}")
    known = {name: options[name] for name in Recipe.__dataclass_fields__ if name in options}
    if not isinstance(known.get("rate", 0.1), int | float):
        raise BadInput(f"the rate {known['rate']!r} is no number: it must be resolved before training")
    return Recipe(**known)
