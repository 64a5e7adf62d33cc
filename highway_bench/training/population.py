"""Population: networks of one shape trained as one stacked network, each as it would be trained alone.

Parameters of one name are one tensor (P, …), and a step is one forward and one backward pass under ``vmap``. Every
member keeps its seed, its batch order, its rate, momentum, decay and weight decay; no number of one enters another's.
The members' own networks and optimisers are views of the stack, so that each can be evaluated or kept at any time. A
member whose loss is lost is taken out, and the rest go on in a smaller stack.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from highway_bench.data import Split
from highway_bench.measure.clock import synchronise
from highway_bench.training.evaluation import loss_of, placed
from highway_bench.training.graphed_step import GraphedStep
from highway_bench.training.loop import FINITE_EVERY, Training
from highway_bench.training.optimisers import StackedOptimiser, stacked_optimiser
from highway_bench.training.stacked import NotStackable, Stacked, why_not_stacked


class Population:
    """Trains ``members`` as one, from wherever they all are. They must agree in shape, data set, optimiser, steps,
    batch size, clipping and ε; everything else is each one's own.

    Raises ``NotStackable`` for networks that cannot be stacked (see ``Stacked``); the members are then as they were. A
    member's ``times`` are its equal share of the stack's: seconds divided by the networks then in it, taken once a
    stretch.
    """

    def __init__(self, members: Sequence[Training]) -> None:
        first = members[0]
        if (reason := why_not_stacked(first.network)) is not None:  # said also where all have ended
            raise NotStackable(reason)
        self.live = [member for member in members if not member.ended]
        if len({common(member) for member in self.live}) > 1:
            raise ValueError(
                "members of a population share optimiser, epsilon, clipping, batch size, steps, and steps done"
            )
        self.kind = first.target_kind
        self.device = first.device
        self._stack()
        for member in self.live:
            member.together = max(member.together, len(members))

    def run(self, at_look: Callable[[], None] = lambda: None, told_to_stop: Callable[[], bool] = lambda: False) -> None:
        """Train until every member has ended, or until told to stop, which is asked before each step (on a CUDA device,
        before it is queued). ``at_look`` is called every 25 steps and at the end, outside the clock."""
        while self.live and not told_to_stop():
            done = self.stretch(told_to_stop)
            for member in self.live:
                member.watch()
            ended = [member for member in self.live if member.ended]
            if ended:
                self.live = [member for member in self.live if not member.ended]
                if self.live:
                    for member in ended:
                        release(member)
                    self._stack()
            if done % FINITE_EVERY == 0:
                at_look()
        at_look()

    def stretch(self, told_to_stop: Callable[[], bool] = lambda: False) -> int:
        """Steps up to the next look, the end of an epoch that is watched, or the end, at least one and then only until
        told to stop; the steps done by then."""
        first = self.live[0]
        done = len(first.losses)
        until = min(done - done % FINITE_EVERY + FINITE_EVERY, first.recipe.steps)
        if first.watched is not None:
            until = min(until, done - done % first.steps_per_epoch + first.steps_per_epoch)
        synchronise(self.device)
        start = time.perf_counter()
        losses = []
        for _ in range(done, until):
            rows = torch.stack([next(member.batches) for member in self.live])
            losses.append(self._advance(rows).clone())
            if told_to_stop():
                break
        values = torch.stack(losses).double().cpu()
        share = (time.perf_counter() - start) / (len(losses) * len(self.live))
        for member, column, rate in zip(self.live, values.unbind(1), self.optimiser.rates.tolist(), strict=True):
            before = member.times[-1] if member.times else 0.0
            member.losses.extend(column.tolist())
            member.times.extend(before + share * step for step in range(1, len(losses) + 1))
            member.set_rate(rate)
        done += len(losses)
        self.step_count.fill_(float(done))
        return done

    def _advance(self, rows: Tensor) -> Tensor:
        """One step on the members' rows (P, batch): their losses (P,)."""
        if self.device.type != "cuda":
            return self._step(rows)
        rows = rows.to(self.device, non_blocking=True)
        size = rows.shape[1]
        if size not in self.recorded:
            self.recorded[size] = GraphedStep(self._step, rows)
        return self.recorded[size](rows)

    def _step(self, rows: Tensor) -> Tensor:
        losses = self.stacked(*self._batch(rows))
        self.optimiser.update(torch.autograd.grad(losses.sum(), self.optimiser.parameters))
        return losses.detach()

    def _batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets (P, batch, …); members have their data in common, or each its own."""
        if len(self.splits) == 1:
            inputs, targets = (part[rows] for part in self.splits[0])
        else:
            picked = [[part[row] for part in split] for split, row in zip(self.splits, rows, strict=True)]
            inputs, targets = (torch.stack(parts) for parts in zip(*picked, strict=True))
        return placed(inputs, self.device, self.live[0].dtype), placed(targets, self.device, self.live[0].dtype)

    def _stack(self) -> None:
        """Stack what is alive, which tries it, and make the members' networks and optimisers views of it.

        Only then, for members that cannot be stacked go on by themselves and must have nothing in common.
        """
        self.recorded: dict[int, GraphedStep] = {}  # by batch size; graphs of a stack before are freed first
        if not self.live:
            return
        self.splits = self._placed_splits()
        rows = torch.arange(self.live[0].batch_size, device=self.splits[0].inputs.device)
        self.stacked = Stacked(
            [member.network for member in self.live], self._loss, self._batch(rows.expand(len(self.live), -1))
        )
        self.step_count = torch.tensor(float(len(self.live[0].losses)), device=self.device)
        self.optimiser = self._stacked_optimiser()
        self._link()

    def _loss(self, network: Callable[[Tensor], Tensor], inputs: Tensor, targets: Tensor) -> Tensor:
        return loss_of(network(inputs), targets, self.kind)

    def _stacked_optimiser(self) -> StackedOptimiser:
        make = stacked_optimiser(self.live[0].recipe.optimiser)
        trained = self.stacked.trained
        own = [dict(member.network.named_parameters()) for member in self.live]
        kept = {
            slot: [
                torch.stack([slot_of(member, named[name], slot) for member, named in zip(self.live, own, strict=True)])
                for name in trained
            ]
            for slot in make.slots
        }
        return make(
            list(trained.values()),
            [member.recipe for member in self.live],
            [member.rate for member in self.live],
            kept,
            len(self.live[0].losses),
        )

    def _link(self) -> None:
        """Make the members' parameters and optimisers' states views of the stack; they count steps in one tensor, so
        that none can go on by itself but through a state that was taken."""
        kept = {
            name: {slot: tensors[place] for slot, tensors in self.optimiser.kept.items()}
            for place, name in enumerate(self.stacked.trained)
        }
        for place, member in enumerate(self.live):
            for name, parameter in member.network.named_parameters():
                parameter.data = self.stacked.parameters[name].detach()[place]
                if name in kept:
                    views = {slot: tensor[place] for slot, tensor in kept[name].items()}
                    member.optimiser.state[parameter] = {**views, "step": self.step_count}

    def _placed_splits(self) -> list[Split]:
        """The data of each member, or one where all share it; on a CUDA device it lies there whole."""
        splits = [member.train for member in self.live]
        if all(split.inputs is splits[0].inputs and split.targets is splits[0].targets for split in splits):
            splits = splits[:1]
        if self.device.type != "cuda":
            return splits
        dtype = self.live[0].dtype
        return [Split(*(placed(part, self.device, dtype) for part in split)) for split in splits]


def common(member: Training) -> tuple[object, ...]:
    """What the members of a population must have in common."""
    recipe = member.recipe
    watches = None if member.watched is None else member.steps_per_epoch
    return (
        recipe.optimiser,
        recipe.steps,
        recipe.clip,
        recipe.epsilon,
        recipe.epsilon_place,
        recipe.last_batch,
        member.batch_size,
        member.steps_per_epoch,
        member.target_kind,
        watches,
        len(member.losses),
    )


def slot_of(member: Training, parameter: Tensor, slot: str) -> Tensor:
    """What a member's optimiser keeps for ``parameter``; zeros before its first step."""
    value = member.optimiser.state.get(parameter, {}).get(slot)
    return value if isinstance(value, Tensor) else torch.zeros_like(parameter)


def release(member: Training) -> None:
    """Give a member that has ended a copy of its weights, so that it does not keep the stack alive."""
    for parameter in member.network.parameters():
        parameter.data = parameter.data.clone()
    member.optimiser.state.clear()
