"""Training one network by a recipe: the batches, the optimiser, the step, and what came of it."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.errors import BadInput
from highway_bench.measure.clock import synchronise
from highway_bench.training.evaluation import Answers, evaluate, loss_of, place_of, placed
from highway_bench.training.recipe import Recipe

FINITE_EVERY = 25  # steps between looks at whether the loss is still finite


def numbers() -> array[float]:
    """An empty row of floats: a long run keeps hundreds of thousands."""
    return array("d")


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
    losses: array[float] = field(default_factory=numbers)
    times: array[float] = field(default_factory=numbers)  # seconds from the first step's start to each step's end
    epochs: list[Answers] = field(default_factory=list)  # of ``watched``, after each epoch
    together: int = 1  # networks that were trained as one with it, the most at any time

    def __post_init__(self) -> None:
        if self.batch_size > len(self.train.inputs):
            raise BadInput(f"a batch of {self.batch_size} is larger than the {len(self.train.inputs)} training items")
        self.device, self.dtype = place_of(self.network)
        self.optimiser = self.recipe.optimiser_for(self.network)
        self.rate = self.recipe.rate
        self.rng_state: tuple[Tensor, Tensor | None] | None = None  # random states to go on from
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
        if self.recipe.epsilon_place == "outside":
            self._give("eps", self.recipe.epsilon_at(len(self.losses) + 1))
        self.optimiser.step()
        self.set_rate(self.rate * self.recipe.factor)
        self.losses.append(float(loss.detach()))
        synchronise(self.device)

    def run(self, at_look: Callable[[], None] = lambda: None, told_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Train until the run has ended, or is told to stop, which is asked before each step. ``at_look`` is called
        every 25 steps and at the end, outside the clock.

        What layers draw (dropout) comes from ``seed``; the global random state stays as it was.
        """
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            self._set_rng_state()
            start = time.perf_counter() - (self.times[-1] if self.times else 0.0)
            while not self.ended and not told_to_stop():
                self.step()
                self.times.append(time.perf_counter() - start)
                before = time.perf_counter()
                self.watch()
                if len(self.losses) % FINITE_EVERY == 0:
                    at_look()
                start += time.perf_counter() - before
            at_look()  # here, where layers still draw from the run's own random state

    @property
    def lost(self) -> bool:
        """Whether the loss was found not to be finite: every 25 steps there is a look at it."""
        done = len(self.losses)
        return done > 0 and done % FINITE_EVERY == 0 and not math.isfinite(self.losses[-1])

    @property
    def ended(self) -> bool:
        """Whether the recipe's steps are done, or the loss is lost."""
        return len(self.losses) >= self.recipe.steps or self.lost

    def watch(self) -> None:
        """Evaluate what is watched, if an epoch has just ended and the loss is not lost."""
        if self.watched is not None and len(self.losses) % self.steps_per_epoch == 0 and not self.lost:
            self.epochs.append(evaluate(self.network, self.watched, self.target_kind))
            self.network.train()

    def set_rate(self, rate: float) -> None:
        """Take the next step at this rate."""
        self.rate = rate
        self._give("lr", rate)

    def _give(self, name: str, value: float) -> None:
        """Take ``value`` for all parameters from the next step on."""
        for group in self.optimiser.param_groups:
            group[name] = value

    def epoch_losses(self) -> list[float]:
        """Mean training loss of each whole epoch so far, every item counting once: what frameworks print beside an
        epoch, and not the loss of the network at its end."""
        sizes = [self.batch_size] * self.steps_per_epoch
        if self.recipe.last_batch == "keep":
            sizes[-1] = len(self.train.inputs) - self.batch_size * (self.steps_per_epoch - 1)
        weights = torch.tensor(sizes, dtype=torch.float64)
        whole = len(self.losses) // self.steps_per_epoch
        values = torch.tensor(self.history()[: whole * self.steps_per_epoch], dtype=torch.float64)
        return [
            float((epoch * weights).sum() / weights.sum())
            for epoch in values.split(self.steps_per_epoch)
            if len(epoch) == self.steps_per_epoch
        ]

    def history(self) -> list[float]:
        """Losses so far, up to and with the first that is not finite."""
        values = list(self.losses)
        wrong = next((place for place, loss in enumerate(values) if not math.isfinite(loss)), len(values))
        return values[: wrong + 1]

    def state(self) -> dict[str, Any]:
        """All that ``restore`` needs to go on from here bit for bit. The batch order follows from seed and step."""
        kept = {name: self.optimiser.state.get(parameter, {}) for name, parameter in self.network.named_parameters()}
        return {
            "network": self.network.state_dict(),
            "optimiser": {
                name: {slot: value for slot, value in slots.items() if isinstance(value, Tensor)}
                for name, slots in kept.items()
            },
            "rate": self.rate,
            "losses": torch.tensor(self.losses, dtype=torch.float64),
            "times": torch.tensor(self.times, dtype=torch.float64),
            "epochs": [tuple(answers) for answers in self.epochs],
            "together": self.together,
            "rng_state": torch.get_rng_state(),
            "rng_state_cuda": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on where ``state`` was taken, from a training made like this one."""
        self.network.load_state_dict(state["network"])
        for name, parameter in self.network.named_parameters():
            if slots := state["optimiser"][name]:
                self.optimiser.state[parameter] = {
                    slot: value.to(self.device, copy=True) for slot, value in slots.items()
                }
        self.set_rate(state["rate"])
        self.losses, self.times = (array("d", state[name].tolist()) for name in ("losses", "times"))
        self.epochs = [Answers(*answers) for answers in state["epochs"]]
        self.together = state["together"]
        self.rng_state = state["rng_state"], state["rng_state_cuda"]
        self.batches = self._batches()
        for _ in self.losses:
            next(self.batches)

    def _set_rng_state(self) -> None:
        """Set the random state that layers draw from: by the seed, or as it was when the state was taken."""
        if self.rng_state is None:
            torch.manual_seed(self.seed)
            return
        host, device = self.rng_state
        torch.set_rng_state(host)
        if device is not None:
            torch.cuda.set_rng_state(device, self.device)
