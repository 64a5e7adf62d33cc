"""The modules that a family gives to a block: H with its gates, in one product or in two modules, and the carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from highway_bench.errors import BadInput
from highway_bench.families._site import FEATURE_AXIS, Gate, Kind, Site
from highway_bench.families.init import init_gate_


def count_parameters(module: nn.Module) -> int:
    """Parameters of ``module``, each counted once, in real numbers. Frozen ones do not count.

    Raises ``BadInput`` where one has no shape before the module's first call.
    """
    return sum(trained_numbers(module).values())


def trained_numbers(module: nn.Module) -> dict[int, int]:
    """The real numbers in each parameter of ``module`` that is not frozen, by its ``id``; two in a complex number.

    Raises ``BadInput`` where a parameter has no shape before the module's first call.
    """
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if any(map(is_lazy, trained)):
        raise BadInput(f"the parameters of a {type(module).__name__} have no shape before its first call")
    return {id(one): one.numel() * (2 if one.is_complex() else 1) for one in trained}


class DirectParts(nn.Module):
    """A module whose parts are attributes of the instance as well, so that they are found without torch's
    ``__getattr__``.

    torch keeps the parts of a module in a dictionary of their own, which Python searches by ``nn.Module.__getattr__``.
    That costs about as much as the call of a part: 5 % of a step of plain layers of 50 units. The attributes follow
    parts that are assigned, replaced or deleted.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module) or name in self.__dict__:
            self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)


class Maps(DirectParts):
    """(H(x), a₁, …) for an H that is no affine map: one module for H, another for all gates' pre-activations."""

    def __init__(self, transform: nn.Module, gate: nn.Module, gates: int, axis: int) -> None:
        super().__init__()
        self.transform = transform
        self.gate = gate
        self.gates = gates
        self.axis = axis

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.transform(x), *self.gate(x).chunk(self.gates, dim=self.axis)


class ActivatedLinear(nn.Linear):
    """g(Wx + b) in one module. A second one for g would cost a narrow layer a tenth of its time."""

    def __init__(self, inputs: int, outputs: int, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__(inputs, outputs)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(nn.functional.linear(x, self.weight, self.bias))


class FusedMaps(DirectParts):
    """(H(x), a₁, …) from one affine product. Each of its slices is initialised as if it were a map by itself."""

    def __init__(
        self, product: nn.Linear | nn.Conv2d, activation: Callable[[Tensor], Tensor], gates: int, axis: int
    ) -> None:
        super().__init__()
        self.product = product
        self.activation = activation
        self.gates = gates
        self.axis = axis

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        h, *gates = self.product(x).chunk(1 + self.gates, dim=self.axis)
        return self.activation(h), *gates


class OwnGate(nn.Module):
    """a + b: the pre-activation of a gate that a block computes from maps of its own, with the bias b by feature."""

    def __init__(self, features: int, bias: float, axis: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.full((features,), bias))
        self.gates = 1
        self.axis = axis

    def forward(self, a: Tensor) -> Tensor:
        return a + along(self.bias, self.axis)


def init_gates_(module: nn.Linear | nn.Conv2d, site: Site, gates: Sequence[Gate], *, skip: int = 0) -> None:
    """Initialise the gates' slices of a fused map, each by its own fan. The first ``skip`` slices are not gates."""
    assert module.bias is not None
    weights, biases = module.weight.data.split(site.width)[skip:], module.bias.data.split(site.width)[skip:]
    for weight, bias, gate in zip(weights, biases, gates, strict=True):
        init_gate_(weight, bias, gate.start(site))


class FixedScale(nn.Module):
    """y = factor · module(x), with a constant factor."""

    def __init__(self, module: nn.Module, factor: float) -> None:
        super().__init__()
        self.module = module
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.factor * self.module(x)
        return y


class PositionRms(nn.Module):
    """y = g · x / √(mean(x²) + ε), the mean being over the features of one position (arXiv:1910.07467, eq. 4)."""

    def __init__(self, features: int, axis: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(features))
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return x * inverse_rms(x, self.axis) * along(self.gain, self.axis)


def inverse_rms(x: Tensor, axis: int, eps: float = 1e-6) -> Tensor:
    """1 / √(mean(x²) + ε) over ``axis``, which stays with the size 1."""
    return torch.rsqrt(x.square().mean(axis, keepdim=True) + eps)


def along(values: Tensor, axis: int) -> Tensor:
    """``values`` (features,) in a shape that broadcasts over tensors whose features are on ``axis``, a negative one."""
    return values.view(-1, *[1] * (-1 - axis))


class Concatenation(nn.Module):
    """Several modules on the same input; their outputs are concatenated on one axis."""

    def __init__(self, parts: Iterable[nn.Module], axis: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([part(x) for part in self.parts], dim=self.axis)


class Carry(nn.Module):
    """A carried path that changes dimension without parameters: every ``stride``-th pixel, then the features.

    ``pad`` appends zeros to the features (arXiv:1512.03385, option A); ``subsample`` selects evenly spaced features.
    Where ``change`` is ``plain``, the network has a plain layer instead (arXiv:1505.00387, §2.1) and no carry.
    ``project`` has parameters, so a family that has it builds it itself.

    Raises ``BadInput`` for a change of dimension that cannot be done in this way.
    """

    selected: Tensor | None  # indices of the features that are carried; None for all

    def __init__(self, site: Site, kind: Kind) -> None:
        super().__init__()
        grows = site.width - site.in_width
        if site.change == "project":
            raise BadInput(
                f"family {site.family.name!r} has no projection of its carried path; use pad, subsample or plain"
            )
        if site.change == "pad" and grows < 0:
            raise BadInput(f"zero-padding cannot make {site.in_width} features {site.width}; use subsample or plain")
        if site.change == "subsample" and grows > 0:
            raise BadInput(f"sub-sampling cannot make {site.in_width} features {site.width}; use pad or plain")
        self.stride = site.stride
        self.axis = FEATURE_AXIS[kind]
        self.grows = max(grows, 0)
        selected = [index * site.in_width // site.width for index in range(site.width)] if grows < 0 else None
        self.register_buffer("selected", None if selected is None else torch.tensor(selected), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.stride != 1:
            x = x[..., :: self.stride, :: self.stride]
        if self.selected is not None:
            return x.index_select(self.axis, self.selected)
        return nn.functional.pad(x, (0, 0) * (-1 - self.axis) + (0, self.grows))
