"""Hooks: observe the inputs and outputs of modules in a forward pass without changing them."""

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
