"""Initialisation of a layer's affine maps, one map at a time.

| init            | H's inner maps           | H's last map                  | gates            |
|-----------------|--------------------------|-------------------------------|------------------|
| `default`       | He for ReLU and GELU, Glorot for the others (by the activation that follows) | the same | Glorot |
| `scaled-branch` | as `default`             | `default` divided by √L       | Glorot           |
| `orthogonal`    | orthogonal, gain √2 for ReLU and GELU, 1 for the others | the same       | Glorot           |
| `uniform`       | as `default`, of the same variance but uniform | the same                 | Glorot           |
| `small`         | normal with standard deviation 0.01, whatever the fan | the same          | Glorot           |

L is the number of connections in the stack (layers × sublayers). Biases start at 0, those of gates at their own value.
A transform without such a map (an LSTM, a user's layer) is multiplied by the constant 1/√L instead. He:
arXiv:1502.01852; Glorot: AISTATS 2010; division by √L: the variance of a residual sum stays bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

Init = Literal["default", "scaled-branch", "orthogonal", "uniform", "small"]
Activation = Literal["relu", "gelu", "tanh", "sigmoid", "identity"]

_MODULES: dict[Activation, type[nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "identity": nn.Identity,
}
_FUNCTIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "identity": nn.Identity(),
}
SMALL = 0.01  # standard deviation of the init called small
_RECTIFIERS = ("relu", "gelu")  # they halve the second moment; a gain of √2 compensates


def activation_module(name: Activation) -> nn.Module:
    """The element-wise non-linearity g called ``name``."""
    return _MODULES[name]()


def activation_function(name: Activation) -> Callable[[Tensor], Tensor]:
    """As ``activation_module``, but as a function, whose call costs less than a module's."""
    return _FUNCTIONS[name]


def init_map_(weight: Tensor, activation: Activation, init: Init, *, gain: float = 1.0) -> None:
    """Fill ``weight`` (out, in, …) in place for a map that ``activation`` follows, times ``gain``."""
    preserving = math.sqrt(2.0) if activation in _RECTIFIERS else 1.0
    if init == "orthogonal":
        nn.init.orthogonal_(weight, gain=preserving)
    elif init == "small":
        nn.init.normal_(weight, std=SMALL)
    elif init == "uniform" and activation in _RECTIFIERS:
        nn.init.kaiming_uniform_(weight, nonlinearity="relu")
    elif init == "uniform":
        nn.init.xavier_uniform_(weight)
    elif activation in _RECTIFIERS:
        nn.init.kaiming_normal_(weight, nonlinearity="relu")
    else:
        nn.init.xavier_normal_(weight)
    if gain != 1:
        weight.data.mul_(gain)


def init_gate_(weight: Tensor, bias: Tensor, start: float) -> None:
    """Fill a gate's slice in place: Glorot weights (a logistic function follows) and the constant bias ``start``."""
    nn.init.xavier_normal_(weight)
    nn.init.constant_(bias, start)
