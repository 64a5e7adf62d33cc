"""Torch's internals: each name of torch with an underscore that this package uses, and what is lost without it.

Torch renames and removes such names in minor releases. Every one is therefore optional, and no other module uses one.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


class LacksInternal(RuntimeError):
    """This torch lacks a name without which something cannot be measured."""


@dataclass(frozen=True)
class Internal:
    """An object of torch at the first of ``paths`` (``module:name``) that exists, and what is ``lost`` without it."""

    paths: tuple[str, ...]
    lost: str

    @property
    def found(self) -> Any | None:
        """The object; ``None`` where this torch lacks it."""
        for path in self.paths:
            with suppress(ImportError, AttributeError):
                return pkgutil.resolve_name(path)
        return None

    @property
    def lack(self) -> str | None:
        """What is lost, in words; ``None`` where nothing is."""
        names = " or ".join(path.replace(":", ".") for path in self.paths)
        return None if self.found is not None else f"torch {torch.__version__} has no {names}: {self.lost}"

    def needed(self) -> Any:
        """The object; raises ``LacksInternal`` where this torch lacks it."""
        if reason := self.lack:
            raise LacksInternal(reason)
        return self.found


CLEAR_CACHES = Internal(  # the second name is that of torch 2.6 to 2.8
    ("torch._inductor.utils:clear_caches", "torch._inductor.utils:clear_inductor_caches"),
    "the time of compilation is not that of a fresh process",
)
COUNTERS = Internal(("torch._dynamo.utils:counters",), "neither graphs nor graph breaks are counted")
DISPATCH_MODE = Internal(("torch.utils._python_dispatch:TorchDispatchMode",), "operations are not counted")
MEM_TRACKER = Internal(("torch.distributed._tools.mem_tracker:MemTracker",), "no peak of an eager step on a CPU")
PYTREE = Internal(("torch.utils._pytree",), "no signal of a layer is measured")
SLEEP = Internal(("torch.cuda:_sleep",), "neither GPU time nor clock rate is measured")


def operator(name: str) -> Any | None:
    """The operator ``_name`` of torch's library; one that this torch lacks is not called either."""
    return getattr(torch.ops.aten, f"_{name}", None)


def may_have_compiled() -> bool:
    """Whether this process has torch's compiler, whose import takes as long as torch's own."""
    return "torch._dynamo" in sys.modules


def only_views(function: Any) -> bool:
    """Whether an operator returns a view that it does not write to."""
    return any(one.alias_info is not None and not one.alias_info.is_write for one in function._schema.returns)


def writes_so_far(x: Tensor) -> int:
    """How often ``x`` was written to in place; 0 where torch does not count, and only other values are then seen."""
    return int(getattr(x, "_version", 0))


def is_compiled(module: nn.Module) -> bool:
    """Whether ``module`` itself went through torch.compile, by either spelling."""
    return any(getattr(module, name, None) is not None for name in ("_orig_mod", "_compiled_call_impl"))


def converted(network: nn.Module, change: Callable[[Tensor], Tensor]) -> nn.Module:
    """``network`` with every tensor changed, its parameters still the same objects."""
    changed: nn.Module = network._apply(change)
    return changed
