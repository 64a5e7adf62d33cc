"""Depth mixing: how far the input of each layer is made of the output of each branch before it.

Branch k is v_k, the output of the transform H of layer k; v₀ is the input of the first layer. x_l is what layer l
reads. Every v_k is held at its value, with the gates that come with H. If branch k is multiplied by a number c_k, then
x_l changes through the connections alone:

    weight(l, k) = ‖∂x_l/∂c_k‖ / ‖v_k‖,   share(l, k) = ⟨∂x_l/∂c_k, x_l⟩ / ‖x_l‖²,   both at c = 1.

A weight is 1 where v_k is added as it is (pre-norm), 1/l where x_l is a mean of all v_k, and a product of carry gates
in a highway network. It has no sign. Shares of a layer sum to 1 where connections are linear at given weights.

Norms: one that only branches read belongs to the branch, so x_l is its input; so does one that reads H's output alone,
and v_k is its output. A norm of the stream itself is held as an affine map, with the deviation that it divides by now.
Other weights that a block computes from its streams (hyper-connections) are not held, and their change counts too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from highway_bench.analysis.hooks import forward_hooks
from highway_bench.analysis.signal import unpadded

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
NORMS = (nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, *BATCH_NORMS)

Forward = Callable[..., Any]


class Layers(Protocol):
    """enter → layers → leave."""

    enter: nn.Module
    joins: nn.ModuleList
    leave: nn.Module


class DepthMixing(NamedTuple):
    """Row l − 1 is layer l: one number for each of v₀ … v_(l−1). NaN where v_k is 0 or something is not finite."""

    weights: list[list[float]]
    shares: list[list[float]]


def depth_mixing(stack: Layers, forward: Callable[[], object], real: Tensor | None = None) -> DepthMixing:
    """The mixing of ``stack`` in one pass of its network, which ``forward`` runs in evaluation mode.

    Of padded inputs, only steps that are ``real`` (items, steps) count. Raises ``ValueError`` for a layer whose branch
    is not found, see ``branch_of``.
    """
    held = HeldStack.of(stack, forward)
    mixing = DepthMixing([[] for _ in stack.joins], [[] for _ in stack.joins])
    with held.norms_held():
        for source, changes in zip(held.sources, held.changes(), strict=False):
            size = unpadded(source, real).double().norm()
            for layer, (x, change) in changes.items():
                x, change = (unpadded(part, real).double() for part in (x, change))
                mixing.weights[layer].append((change.norm() / size).item())
                mixing.shares[layer].append(((change * x).sum() / x.square().sum()).item())
    return mixing


def branch_of(layer: nn.Module) -> nn.Module | None:
    """The module that computes H: what the block got from its family as ``transform``, or as ``maps`` with gates."""
    named = (getattr(layer, name, None) for name in ("transform", "maps"))
    return next((part for part in named if isinstance(part, nn.Module)), None)


@dataclass
class HeldStack:
    """A stack whose branches give fixed outputs, whatever they read."""

    stack: Layers
    branches: list[nn.Module]
    sources: list[Tensor]  # v₀, …
    gates: list[tuple[Tensor, ...]]  # by layer, what its maps give besides H
    given: list[Tensor] = field(default_factory=list)  # v₀, … of the current pass
    inputs: dict[int, Tensor] = field(default_factory=dict)  # by layer, x_l of the current pass

    @classmethod
    def of(cls, stack: Layers, forward: Callable[[], object]) -> HeldStack:
        """``stack`` with the branches' outputs of one pass."""
        branches = [branch for layer in stack.joins if (branch := branch_of(layer)) is not None]
        if len(branches) < len(stack.joins):
            raise ValueError("a layer has neither transform nor maps, so its branch is not known")
        outputs: dict[int, tuple[Tensor, ...]] = {}

        def note(index: int, x: Tensor, output: Any) -> None:
            output = (x,) if index == 0 else output if isinstance(output, tuple) else (output,)
            outputs[index] = tuple(part.detach() for part in output)

        with forward_hooks(dict(enumerate([stack.enter, *branches])), note), torch.no_grad():
            forward()
        every = [outputs[index] for index in sorted(outputs)]
        return cls(stack, branches, [one[0] for one in every], [one[1:] for one in every[1:]])

    def changes(self) -> Iterator[dict[int, tuple[Tensor, Tensor]]]:
        """For each of v₀ … v_(L−1) = v_k: by layer after it, counted from 0, x_l and ∂x_l/∂c_k.

        Σ_l ⟨u_l, ∂x_l/∂c_k⟩ is linear in the u_l, and one backward pass from x_l with gradients u_l gives it. Its
        gradient by u_l is ∂x_l/∂c_k, for all layers at once.
        """
        with torch.enable_grad():
            factors = [torch.ones_like(source.flatten()[0]).requires_grad_() for source in self.sources]
            self.run([source * factor for source, factor in zip(self.sources, factors, strict=True)])
            inputs = [self.inputs[layer] for layer in range(len(self.branches))]
            u = [torch.zeros_like(x, requires_grad=True) for x in inputs]
            sums = torch.autograd.grad(inputs, factors[:-1], u, create_graph=True, allow_unused=True)
        for k, total in enumerate(sums):
            changes: Sequence[Tensor] = [torch.zeros_like(x) for x in inputs[k:]]
            if total is not None:
                changes = torch.autograd.grad(
                    total, u[k:], retain_graph=True, allow_unused=True, materialize_grads=True
                )
            pairs = zip(inputs[k:], changes, strict=True)
            yield {layer: (x.detach(), change) for layer, (x, change) in enumerate(pairs, start=k)}

    def run(self, sources: Sequence[Tensor]) -> Any:
        """What the stack gives if its branches give ``sources[1:]``; ``sources[0]`` is its input."""
        self.given = list(sources)
        with ExitStack() as replacements:
            for layer, branch in enumerate(self.branches):
                replacements.enter_context(replaced(branch, self._branch(layer)))
            state = self.stack.enter(sources[0])
            for join in self.stack.joins:
                state = join(state)
            return self.stack.leave(state)

    def _branch(self, layer: int) -> Forward:
        def forward(x: Tensor, *_: Any, **__: Any) -> Any:
            self.inputs[layer] = x
            gates = self.gates[layer]
            return (self.given[layer + 1], *gates) if gates else self.given[layer + 1]

        return forward

    @contextmanager
    def norms_held(self) -> Iterator[None]:
        """While the context is open, norms of branches are left out, and norms of the stream are affine maps.

        ``sources`` are then those after the norms that end branches.
        """
        pairs = zip(self.branches, self.stack.joins, strict=True)
        norms = [norm for branch, layer in pairs for norm in other_norms(branch, layer)]
        calls: dict[int, tuple[Tensor, Tensor]] = {}
        for source in self.sources:
            source.requires_grad_()
        with (
            torch.enable_grad(),
            forward_hooks(dict(enumerate(norms)), lambda index, x, y: calls.update({index: (x, y)})),
        ):
            final = self.run(self.sources)
            outputs = [y for _, y in calls.values()]
            reach = torch.autograd.grad(final.sum(), outputs, allow_unused=True) if outputs else ()
        for source in self.sources:
            source.requires_grad_(False)
        with ExitStack() as replacements:
            for (index, (x, y)), reached in zip(calls.items(), reach, strict=True):
                ended = next((k for k, source in enumerate(self.sources) if k and source is x), None)
                if ended is not None:
                    self.sources[ended] = y.detach()
                forward = identity if ended is not None or reached is None else affine(norms[index])
                replacements.enter_context(replaced(norms[index], forward))
            yield


def other_norms(branch: nn.Module, layer: nn.Module) -> list[nn.Module]:
    """The norms of ``layer`` that are no part of ``branch``."""
    inside = set(branch.modules())
    return [part for part in layer.modules() if isinstance(part, NORMS) and part not in inside]


def identity(x: Tensor) -> Tensor:
    """x itself."""
    return x


def affine(norm: nn.Module) -> Forward:
    """The norm as an affine map of x: its derivative leaves out that of the deviation.

    Batch norms are affine in evaluation mode. A norm of another kind is differentiated as it is.
    """
    weight, bias = (getattr(norm, name, None) for name in ("weight", "bias"))
    if not isinstance(norm, nn.LayerNorm | nn.GroupNorm) or weight is None or getattr(norm, "num_groups", 1) > 1:
        return norm.forward
    eps = norm.eps

    def forward(x: Tensor) -> Tensor:
        last = isinstance(norm, nn.LayerNorm)
        axes = tuple(range(-weight.ndim, 0) if last else range(1, x.ndim))
        shape = weight.shape if last else (-1, *[1] * (x.ndim - 2))
        deviation = (x.detach().var(axes, correction=0, keepdim=True) + eps).sqrt()
        y: Tensor = (x - x.mean(axes, keepdim=True)) / deviation * weight.view(shape)
        return y if bias is None else y + bias.view(shape)

    return forward


@contextmanager
def replaced(module: nn.Module, forward: Forward) -> Iterator[None]:
    """While the context is open, ``module`` computes ``forward``."""
    module.forward = forward
    try:
        yield
    finally:
        del module.forward
