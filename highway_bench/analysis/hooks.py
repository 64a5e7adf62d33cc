"""Watching a forward pass: being told of what goes into some modules and what comes out, without changing them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from torch import nn

See = Callable[[int, Any, Any], None]
"""Called with a module's key, its first input and its output."""


@contextmanager
def watching(modules: Mapping[int, nn.Module], see: See) -> Iterator[None]:
    """While it lasts, ``see`` is called after every forward of one of ``modules``. Nothing stays behind."""
    with ExitStack() as hooks:
        for key, module in modules.items():
            hooks.callback(module.register_forward_hook(partial(_tell, key, see)).remove)
        yield


def _tell(key: int, see: See, _module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
    see(key, inputs[0], output)
