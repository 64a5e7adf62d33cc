"""Training one network by a recipe: batches, optimiser, steps, losses and times."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.errors import BadInput
from highway_bench.measure.device import synchronise
from highway_bench.measure.precision import repeatable
from highway_bench.training.evaluation import (
    Evaluation,
    LossFunction,
    device_and_dtype,
    evaluate,
    loss_of,
    to_device,
    to_gpu,
)
from highway_bench.training.recipe import Recipe

FINITE_EVERY = 25  # steps between two checks that the loss is finite


def numbers() -> array[float]:
    """An empty array of float64. A long run holds hundreds of thousands of values."""
    return array("d")


@dataclass
class Training:
    """The training of one network on one split. ``step`` takes one step and synchronises the device.

    The batch order depends on ``seed`` alone: whole shuffled epochs, whose incomplete last batch the recipe drops or
    keeps. Inputs are cast to the network's dtype. ``eval_split``, if given, is evaluated after every epoch; this time
    is not counted. On a GPU, kernels that give equal numbers in every run are used where torch has them;
    ``unrepeatable`` are the operators for which it has none. Raises ``BadInput`` if a batch is larger than the split.
    """

    network: nn.Module
    train: Split
    target_kind: TargetKind
    recipe: Recipe
    batch_size: int
    seed: int
    eval_split: Split | None = None
    losses: array[float] = field(default_factory=numbers)
    times: array[float] = field(default_factory=numbers)  # seconds from the first step's start to each step's end
    epochs: list[Evaluation] = field(default_factory=list)  # of ``eval_split``, after each epoch
    together: int = 1  # the largest population that it was trained in
    own_loss: LossFunction | None = None  # instead of the loss of the targets' kind
    unrepeatable: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.batch_size > len(self.train.inputs):
            raise BadInput(f"a batch of {self.batch_size} is larger than the {len(self.train.inputs)} training items")
        self.device, self.dtype = device_and_dtype(self.network)
        self.optimiser = self.recipe.optimiser_for(self.network)
        self.rng_state: tuple[Tensor, Tensor | None] | None = None  # restored states of the CPU and of the device
        self.steps_per_epoch = self.recipe.steps_per_epoch(len(self.train.inputs), self.batch_size)
        self.batches = self._batches()
        self.network.train()

    def _batches(self) -> Iterator[Tensor]:
        order = torch.Generator().manual_seed(self.seed)
        items = len(self.train.inputs)
        while True:
            shuffled = torch.randperm(items, generator=order)
            yield from shuffled.split(self.batch_size)[: self.steps_per_epoch]

    @cached_property
    def resident(self) -> Split:
        """The training split where batches are gathered: a GPU holds it whole, for a copy a step would take longer
        than a small step."""
        return self.train if self.device.type == "cpu" else to_gpu(self.train, self.device, self.dtype)

    def step(self) -> None:
        """One step: forward, loss, backward, update."""
        batch = next(self.batches).to(self.resident.inputs.device)
        inputs, targets = (to_device(part[batch], self.device, self.dtype) for part in self.resident)
        loss = loss_of(self.network(inputs), targets, self.target_kind, self.own_loss)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * group["share"]
            if self.recipe.epsilon_place == "outside":
                group["eps"] = self.recipe.epsilon_at(len(self.losses) + 1)
        self.optimiser.step()
        self.losses.append(float(loss.detach()))
        synchronise(self.device)

    def run(self, at_check: Callable[[], None] = lambda: None, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Train until the run has ended or ``should_stop``, which is called before each step, is true.

        ``at_check`` is called every 25 steps and at the end; its time is not counted. Random layers (dropout) depend on
        ``seed``; the global random state does not change.
        """
        with (
            torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []),
            repeatable(self.device) as self.unrepeatable,
        ):
            self._set_rng_state()
            _ = self.resident  # moved before the clock starts
            start = time.perf_counter() - (self.times[-1] if self.times else 0.0)
            while not self.ended and not should_stop():
                self.step()
                self.times.append(time.perf_counter() - start)
                before = time.perf_counter()
                self.evaluate_epoch()
                if len(self.losses) % FINITE_EVERY == 0:
                    at_check()
                start += time.perf_counter() - before
            at_check()  # within the fork: a checkpoint saves the run's own random state
        vars(self).pop("resident", None)

    @property
    def diverged(self) -> bool:
        """Whether the loss is not finite. It is checked every 25 steps."""
        done = len(self.losses)
        return done > 0 and done % FINITE_EVERY == 0 and not math.isfinite(self.losses[-1])

    @property
    def ended(self) -> bool:
        """Whether the recipe's steps are done, or the run has diverged."""
        return len(self.losses) >= self.recipe.steps or self.diverged

    def evaluate_epoch(self) -> None:
        """Evaluate ``eval_split`` if an epoch has just ended and the run has not diverged."""
        if self.eval_split is not None and len(self.losses) % self.steps_per_epoch == 0 and not self.diverged:
            self.epochs.append(evaluate(self.network, self.eval_split, self.target_kind, own=self.own_loss))
            self.network.train()

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return self.recipe.rates[len(self.losses)]

    def epoch_losses(self) -> list[float]:
        """Mean training loss of each complete epoch, weighted by batch size.

        Frameworks print this per epoch. It is not the loss of the network at the epoch's end."""
        sizes = [self.batch_size] * self.steps_per_epoch
        if self.recipe.last_batch == "keep":
            sizes[-1] = len(self.train.inputs) - self.batch_size * (self.steps_per_epoch - 1)
        weights = torch.tensor(sizes, dtype=torch.float64)
        complete = len(self.losses) // self.steps_per_epoch
        values = torch.tensor(self.history()[: complete * self.steps_per_epoch], dtype=torch.float64)
        return [
            float((epoch * weights).sum() / weights.sum())
            for epoch in values.split(self.steps_per_epoch)
            if len(epoch) == self.steps_per_epoch
        ]

    def history(self) -> list[float]:
        """Losses so far, up to and including the first that is not finite."""
        values = list(self.losses)
        wrong = next((step for step, loss in enumerate(values) if not math.isfinite(loss)), len(values))
        return values[: wrong + 1]

    def state(self) -> dict[str, Any]:
        """All that ``restore`` needs to continue bit for bit. The batch order follows from seed and step, the learning
        rate from recipe and step."""
        slots_of = {name: self.optimiser.state.get(part, {}) for name, part in self.network.named_parameters()}
        return {
            "network": self.network.state_dict(),
            "optimiser": {
                name: {slot: value for slot, value in slots.items() if isinstance(value, Tensor)}
                for name, slots in slots_of.items()
            },
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "times": torch.tensor(self.times, dtype=torch.float64),
            "epochs": [tuple(epoch) for epoch in self.epochs],
            "together": self.together,
            "rng_state": torch.get_rng_state(),
            "rng_state_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Set this training to ``state``, which an equal training returned."""
        self.network.load_state_dict(state["network"])
        for name, parameter in self.network.named_parameters():
            if slots := state["optimiser"][name]:
                self.optimiser.state[parameter] = {
                    slot: value.to(self.device, copy=True) for slot, value in slots.items()
                }
        self.losses, self.times = (array("d", state[name].tolist()) for name in ("losses", "times"))
        self.epochs = [Evaluation(*epoch) for epoch in state["epochs"]]
        self.together = state["together"]
        self.rng_state = state["rng_state"], state["rng_state_cuda"]
        self.batches = self._batches()
        for _ in self.losses:
            next(self.batches)

    def _set_rng_state(self) -> None:
        """Set torch's random state from the seed, or to the restored state."""
        if self.rng_state is None:
            torch.manual_seed(self.seed)
            return
        host, device = self.rng_state
        torch.set_rng_state(host)
        if device is not None:
            torch.cuda.set_rng_state(device, self.device)
