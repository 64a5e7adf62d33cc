"""Stacked: networks of one shape are called as one under ``vmap``; networks that cannot be stacked are refused.

``vmap`` runs some networks but computes them wrongly: a module's other effects and tensors (random numbers, buffers,
unregistered tensors) would be computed once for all networks, or be lost. Such modules are refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

OF_MODULES = vars(nn.Module()).keys() - {"training"}  # attributes that every module has
StatelessCall = Callable[..., Tensor]  # of(network, x, …): a function of a network and its inputs, for example the loss


class NotStackable(Exception):
    """The networks cannot be stacked. The message is the reason."""


class Stacked:
    """Calls ``of`` on all P ``networks`` in one pass. Parameters of one name are one tensor (P, …).

    ``trained`` are the parameters that are not frozen. ``example`` are the inputs of ``of`` after the network, each
    (P, …). They are run forward and backward here, before any training. Raises ``NotStackable`` for networks that
    cannot be stacked; the networks do not change.
    """

    def __init__(self, networks: Sequence[nn.Module], of: StatelessCall, example: Sequence[Tensor]) -> None:
        first = networks[0]
        if (reason := why_not_stacked(first)) is not None:
            raise NotStackable(reason)
        if any(numbers_in(network) != numbers_in(first) for network in networks):
            raise NotStackable("the networks' modules hold other numbers")
        try:
            parameters, buffers = stack_module_state(list(networks))
            self.parameters: dict[str, Tensor] = dict(parameters)
            self.trained = {name: value for name, value in self.parameters.items() if value.requires_grad}
            self._buffers, self._buffer_axes = common_buffers(dict(buffers))
            self._shell = copy.deepcopy(first).to("meta")
            self._of = of
            if (reason := what_changes(first, of, [part[0] for part in example])) is not None:
                raise NotStackable(reason)
            self.gradients(self(*example))
        except torch.OutOfMemoryError:  # not a matter of vmap
            raise
        except (RuntimeError, ValueError, TypeError) as error:  # TypeError: what a module holds cannot be copied
            drawn = "the network draws random numbers" if "randomness" in str(error) else None
            raise NotStackable(drawn or f"{type(error).__name__}: {error}") from error

    def __call__(self, *inputs: Tensor) -> Tensor:
        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], *parts: Tensor) -> Tensor:
            def network(x: Tensor) -> Any:
                return functional_call(self._shell, (parameters, buffers), (x,))

            return self._of(network, *parts)

        axes = (0, self._buffer_axes, *(0 for _ in inputs))
        with attention_kernels(inputs[0].device):
            results: Tensor = vmap(one, in_dims=axes)(self.parameters, self._buffers, *inputs)
        return results

    def gradients(self, losses: Tensor) -> tuple[Tensor, ...]:
        """The gradients (P, …) of the ``trained`` parameters by the networks' ``losses`` (P,).

        Raises ``NotStackable`` where none reaches a parameter: a layer may decide by itself which of its parts it
        calls. Torch's optimisers leave such a parameter as it is; a stacked one would let it decay.
        """
        found: tuple[Tensor | None, ...] = torch.autograd.grad(
            losses.sum(), list(self.trained.values()), allow_unused=True
        )
        gradients = tuple(gradient for gradient in found if gradient is not None)
        if len(gradients) < len(found):
            names = [name for name, gradient in zip(self.trained, found, strict=True) if gradient is None]
            raise NotStackable(f"no gradient reaches {names[0]}")
        return gradients


def attention_kernels(device: torch.device) -> AbstractContextManager[None]:
    """The kernels of attention that have a gradient under ``vmap``.

    There no tensor says that it requires a gradient, so a GPU's fused kernels save nothing for the backward pass.
    """
    return nullcontext() if device.type == "cpu" else sdpa_kernel(SDPBackend.MATH)


def why_not_stacked(network: nn.Module) -> str | None:
    """Why the modules of ``network`` cannot be stacked; ``None`` if no reason is known."""
    for module in network.modules():
        if isinstance(module, nn.RNNBase):
            return f"torch has no batching rule for nn.{type(module).__name__}"
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:  # except in the first network
            return "torch's batching rule for nn.Embedding trains the row of its padding"
        if getattr(module, "track_running_stats", False):
            return "the network holds batch statistics"
        for name, value in attributes(module):
            if isinstance(value, Tensor):
                return f"the tensor {type(module).__name__}.{name} is not registered"
    for what, named in (("parameters", network.named_parameters), ("buffers", network.named_buffers)):
        if len(list(named(remove_duplicate=False))) > len(list(named())):
            return f"{what} are shared"
    kinds = {parameter.dtype for parameter in network.parameters() if parameter.requires_grad}
    if any(kind.is_complex for kind in kinds):
        return "the stacked optimisers take no complex parameters"
    if not kinds <= {torch.float32, torch.float64}:
        return "rates of single members would be rounded to half precision"
    return None


def what_changes(network: nn.Module, of: StatelessCall, inputs: Sequence[Tensor]) -> str | None:
    """What a forward pass in training mode changes in a network, tried on a copy; ``None`` if nothing changes."""
    trial = copy.deepcopy(network).train()
    buffers, counted = dict(trial.named_buffers()), numbers_in(trial)
    values = {name: buffer.clone() for name, buffer in buffers.items()}
    with torch.no_grad(), torch.random.fork_rng(devices={part.device for part in inputs if part.is_cuda}):
        of(trial, *inputs)
    after = dict(trial.named_buffers())
    if after.keys() != buffers.keys() or any(
        after[name] is not buffer or not torch.allclose(buffer, values[name], rtol=0, atol=0, equal_nan=True)
        for name, buffer in buffers.items()
    ):
        return "the network changes its buffers"
    return None if numbers_in(trial) == counted else "the network's modules change their numbers"


def numbers_in(network: nn.Module) -> dict[tuple[str, str], float]:
    """The numbers that modules hold as attributes (a scale, a count of calls), by module path and name."""
    return {
        (path, name): value
        for path, module in network.named_modules()
        for name, value in attributes(module)
        if isinstance(value, int | float)
    }


def attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """The attributes of a module except parameters, buffers and modules, by name; lists and mappings are unpacked."""
    for name, value in vars(module).items():
        if name not in OF_MODULES:
            yield from leaves(name, value)


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """``value`` by its name, or the leaves of a list, tuple or mapping, each by its own name."""
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, part in value.items():
        yield from leaves(f"{name}[{key!r}]", part)


def common_buffers(stacked: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, int | None]]:
    """The buffers for ``vmap`` and their network axis: 0, or ``None`` for a buffer that is equal in all networks."""
    same = {name for name, value in stacked.items() if bool((value == value[:1]).all())}
    return (
        {name: value[0] if name in same else value for name, value in stacked.items()},
        {name: None if name in same else 0 for name in stacked},
    )
