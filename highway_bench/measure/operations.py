"""Operations: exact counts of what an eager step does, which no load of the machine changes.

A dispatch mode sees every operator that reaches the device's backend, forward and backward. Counted are the operators,
those of them that start a kernel, and the bytes of the tensors that these read and write. Operators that only make a
view, or allocate, start no kernel. An operator that starts several kernels inside, as a fused layer does, counts once.

The history counts steps of older commits by this file, so it imports no other part of the package than meters. asv
imports it as well, so torch is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

ALLOCATE = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that return memory without writing it."""


class Operations(NamedTuple):
    """Counts of one step: operators called, kernels started, bytes of tensors read and written by these."""

    operator_calls: int
    kernel_launches: int
    bytes_moved: int


def count_operations(step: Callable[[], object]) -> Operations:
    """The counts of one call of ``step``, which really runs, with its side effects. Compiled functions run eagerly."""
    import torch

    from .torch_internals import DISPATCH_MODE

    class Counter(DISPATCH_MODE.needed()):  # type: ignore[misc]
        calls = launches = moved = 0

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            self.calls += 1
            if starts_kernel(function):
                self.launches += 1
                tensors = tensors_in([args, *(kwargs or {}).values(), result])
                self.moved += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
            return result

    counter = Counter()
    with torch.compiler.set_stance("force_eager"), counter:
        step()
    return Operations(counter.calls, counter.launches, counter.moved)


def starts_kernel(function: Any) -> bool:
    """Whether an operator reads or writes elements: it is no view and no allocation."""
    from .torch_internals import only_views

    return not only_views(function) and function.overloadpacket.__name__ not in ALLOCATE


def tensors_in(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors in nested lists and tuples; each occurrence once."""
    import torch

    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
