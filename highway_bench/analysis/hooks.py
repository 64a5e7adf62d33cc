"""Hooks: observe the inputs and outputs of modules in a forward pass, or leave a layer out of it, and no longer.

A lesion replaces one layer of a trained network by a copy of its input (arXiv:1507.06228, §4.2). A block that carries
its input has a ``carry`` module, and its lesioned layer is y = carry(x), which is y = x where the shape stays. This is
the same as a highway layer with T = 0, and a residual or pre-norm layer with a branch F = 0. In other blocks a lesion
removes more than the branch: post-norm also loses the norm after the sum, and a block with its own carry gate no longer
scales its input. A layer without a carried path (plain) has no lesion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

Observer = Callable[[int, Any, Any], None]
"""Called with a module's key, its first input and its output."""


@contextmanager
def forward_hooks(modules: Mapping[int, nn.Module], observe: Observer) -> Iterator[None]:
    """While the context is open, call ``observe`` after every forward of one of ``modules``. Hooks are removed on
    exit."""
    with ExitStack() as hooks:
        for key, module in modules.items():
            hooks.callback(module.register_forward_hook(partial(_call, key, observe)).remove)
        yield


def _call(key: int, observe: Observer, _module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    observe(key, inputs[0], output)


def carried_path(layer: nn.Module) -> nn.Module | None:
    """The module that carries the input past the transform of the block ``layer``; ``None`` where nothing is
    carried."""
    carry = getattr(layer, "carry", None)
    return carry if isinstance(carry, nn.Module) else None


@contextmanager
def cut_out(layers: nn.ModuleList, index: int) -> Iterator[None]:
    """While the context is open, layer ``index`` only carries. Raises ``ValueError`` where it carries nothing."""
    layer = layers[index]
    carry = carried_path(layer)
    if carry is None:
        raise ValueError(f"{type(layer).__name__} carries nothing, so it cannot be cut out")
    layers[index] = carry
    try:
        yield
    finally:
        layers[index] = layer
