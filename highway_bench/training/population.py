"""Population: networks of one shape are trained as one stacked network, each as it would be trained alone.

Parameters of one name are one tensor (P, …), and a step is one forward and one backward pass under ``vmap``. Every
member has its own seed, batch order, learning rates, momentum and weight decay; members do not affect one another. The
members' networks and optimisers are views of the stack, so each can be evaluated or saved at any time. A member that
diverges is removed, and the others continue in a smaller stack. On a GPU a step is a CUDA graph: its thousands of small
kernels cost one launch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from highway_bench.blocks import scalar_names
from highway_bench.data import Split
from highway_bench.measure.device import on_side_stream, synchronise
from highway_bench.measure.precision import repeatable
from highway_bench.training.evaluation import loss_of, to_device, to_gpu
from highway_bench.training.loop import FINITE_EVERY, Training
from highway_bench.training.optimisers import StackedOptimiser, stacked_optimiser
from highway_bench.training.recipe import SCALAR_SHARE
from highway_bench.training.stacked import NotStackable, Stacked, why_not_stacked

WARM_UP = 3  # eager steps before one is captured, as torch's own examples have


class GraphedStep:
    """``step(rows)`` on a CUDA device: the first calls run eagerly, one call captures the graph, later calls replay it.

    Every call is exactly one step; the capture itself computes nothing. ``step`` must not wait for the device, and only
    its result may be used outside. The next call overwrites that result.
    """

    def __init__(self, step: Callable[[Tensor], Tensor], rows: Tensor) -> None:
        self._step = step
        self._rows = torch.empty_like(rows)
        self._eager_steps = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result = torch.empty(0)

    def __call__(self, rows: Tensor) -> Tensor:
        self._rows.copy_(rows)
        if self._graph is None and self._eager_steps < WARM_UP:
            self._result = on_side_stream(lambda: self._step(self._rows), rows.device)
            self._eager_steps += 1
        elif self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._result = self._step(self._rows)
            self._graph.replay()
        else:
            self._graph.replay()
        return self._result


class Population:
    """Trains ``members`` as one stack from their common step on.

    Members share shape, data set, optimiser, steps, steps done, batch size, clipping and ε; everything else may differ.
    A member's ``times`` are its share of the stack's seconds: those of a chunk of steps, divided by steps and members.

    Raises ``NotStackable`` for networks that cannot be stacked (see ``Stacked``), and does not change the members then.
    Raises ``ValueError`` for members that do not agree.
    """

    def __init__(self, members: Sequence[Training]) -> None:
        first = members[0]
        if (reason := why_not_stacked(first.network)) is not None:  # also where all members have ended
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

    def run(self, at_check: Callable[[], None] = lambda: None, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Train until every member has ended or ``should_stop`` is true.

        ``should_stop`` is called before each step (on a CUDA device, before a step is queued), ``at_check`` every 25
        steps and at the end; the time of ``at_check`` is not counted. Raises ``NotStackable`` where the members turn
        out not to be trainable as one; they have changed by then."""
        members = self.live
        with repeatable(self.device) as unrepeatable:
            try:
                self._train(at_check, should_stop)
            finally:
                self.graphed_steps.clear()  # a graph refers to this population, and keeps its memory until then
        for member in members:
            member.unrepeatable = unrepeatable

    def _train(self, at_check: Callable[[], None], should_stop: Callable[[], bool]) -> None:
        while self.live and not should_stop():
            done = self.run_chunk(should_stop)
            for member in self.live:
                member.evaluate_epoch()
            ended = [member for member in self.live if member.ended]
            if ended:
                self.live = [member for member in self.live if not member.ended]
                if self.live:
                    for member in ended:
                        release(member)
                    self._stack()
            if done % FINITE_EVERY == 0:
                at_check()
        at_check()

    def run_chunk(self, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Train up to the next check, evaluated epoch or end of the run. Returns the number of steps done so far.

        The chunk stops after the first step, or after any later one, if ``should_stop`` is true."""
        first = self.live[0]
        done = len(first.losses)
        until = min(done - done % FINITE_EVERY + FINITE_EVERY, first.recipe.steps)
        if first.eval_split is not None:
            until = min(until, done - done % first.steps_per_epoch + first.steps_per_epoch)
        synchronise(self.device)
        start = time.perf_counter()
        losses = []
        for _ in range(done, until):
            rows = torch.stack([next(member.batches) for member in self.live])
            losses.append(self._advance(rows).clone())
            if should_stop():
                break
        values = torch.stack(losses).double().cpu()
        share = (time.perf_counter() - start) / (len(losses) * len(self.live))
        for member, column in zip(self.live, values.unbind(1), strict=True):
            before = member.times[-1] if member.times else 0.0
            member.losses.extend(column.tolist())
            member.times.extend(before + share * step for step in range(1, len(losses) + 1))
        done += len(losses)
        self.step_count.fill_(float(done))
        return done

    def _advance(self, rows: Tensor) -> Tensor:
        """One step on the members' rows (P, batch). Returns their losses (P,)."""
        if self.device.type != "cuda":
            return self._step(rows)
        rows = rows.to(self.device, non_blocking=True)
        size = rows.shape[1]
        if size not in self.graphed_steps:
            self.graphed_steps[size] = GraphedStep(self._step, rows)
        return self.graphed_steps[size](rows)

    def _step(self, rows: Tensor) -> Tensor:
        losses = self.stacked(*self._batch(rows))
        self.optimiser.update(self.stacked.gradients(losses))
        return losses.detach()

    def _batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs and targets (P, batch, …), from one split that all members share or from one split each."""
        if len(self.splits) == 1:
            inputs, targets = (part[rows] for part in self.splits[0])
        else:
            picked = [[part[row] for part in split] for split, row in zip(self.splits, rows, strict=True)]
            inputs, targets = (torch.stack(parts) for parts in zip(*picked, strict=True))
        return to_device(inputs, self.device, self.live[0].dtype), to_device(targets, self.device, self.live[0].dtype)

    def _stack(self) -> None:
        """Stack the live members and make their networks and optimisers views of the stack.

        The views come last: members that cannot be stacked are trained alone and must not share memory.
        """
        self.graphed_steps: dict[int, GraphedStep] = {}  # by batch size; frees the previous stack's graphs first
        if not self.live:
            return
        self.splits = self._splits_on_device()
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
        trained, scalars = self.stacked.trained, scalar_names(self.live[0].network)
        own = [dict(member.network.named_parameters()) for member in self.live]
        state = {
            slot: [
                torch.stack([slot_of(member, named[name], slot) for member, named in zip(self.live, own, strict=True)])
                for name in trained
            ]
            for slot in make.slots
        }
        return make(
            list(trained.values()),
            [SCALAR_SHARE if name in scalars else 1.0 for name in trained],
            [member.recipe for member in self.live],
            state,
            len(self.live[0].losses),
        )

    def _link(self) -> None:
        """Make the members' parameters and optimiser states views of the stack.

        All optimisers share one step counter, so a member cannot continue alone except from a saved state."""
        stacked_state = {
            name: {slot: tensors[index] for slot, tensors in self.optimiser.state.items()}
            for index, name in enumerate(self.stacked.trained)
        }
        for index, member in enumerate(self.live):
            for name, parameter in member.network.named_parameters():
                parameter.data = self.stacked.parameters[name].detach()[index]
                if name in stacked_state:
                    views = {slot: tensor[index] for slot, tensor in stacked_state[name].items()}
                    member.optimiser.state[parameter] = {**views, "step": self.step_count}

    def _splits_on_device(self) -> list[Split]:
        """The members' training splits, or a single one if all share it. A CUDA device holds them whole."""
        splits = [member.train for member in self.live]
        if all(split.inputs is splits[0].inputs and split.targets is splits[0].targets for split in splits):
            splits = splits[:1]
        if self.device.type != "cuda":
            return splits
        return [to_gpu(split, self.device, self.live[0].dtype) for split in splits]


def common(member: Training) -> tuple[object, ...]:
    """What must be equal for all members of a population."""
    recipe = member.recipe
    evaluated_every = None if member.eval_split is None else member.steps_per_epoch
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
        evaluated_every,
        len(member.losses),
    )


def slot_of(member: Training, parameter: Tensor, slot: str) -> Tensor:
    """The state ``slot`` of ``parameter`` in the member's optimiser; zeros before the first step."""
    value = member.optimiser.state.get(parameter, {}).get(slot)
    return value if isinstance(value, Tensor) else torch.zeros_like(parameter)


def release(member: Training) -> None:
    """Copy the weights of a member that has ended: views would hold the memory of the whole stack."""
    for parameter in member.network.parameters():
        parameter.data = parameter.data.clone()
    member.optimiser.state.clear()
