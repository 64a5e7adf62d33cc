"""FLOP and operations: exact counts of what a step does, which no load of the machine changes.

FLOP are floating-point operations counted while a function runs; a multiply-add is two.

Matrix products, convolutions, attention products and recurrent layers are counted, forward and backward, from the
shapes that kernels receive. Torch's counter has no formulas for the fused CPU attention and for the fused LSTM, GRU and
RNN kernels of CPUs and cuDNN, which it silently counts as 0. This module adds them.

Not counted: element-wise work (a highway layer's ``x + T·(H − x)`` costs memory traffic rather than FLOP),
normalisation, softmax, reductions, look-ups, matrix–vector and dot products written as ``mv`` or ``dot``, optimiser
steps, and the one-kernel fast path that ``nn.TransformerEncoderLayer`` takes in evaluation without gradients. Causal
attention counts as full attention. A fused attention's backward includes its recomputed scores: 2.5 × forward, where
the unfused one has 2 ×.

Of an eager step, the operators that reach the device's backend are counted too, forward and backward: those called,
those of them that start a kernel, and the bytes of the tensors that these read and write. Operators that only make a
view, or allocate, start no kernel. An operator that starts several kernels inside, as a fused layer does, counts once.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.module_tracker import ModuleTracker

from .torch_internals import DISPATCH_MODE, may_have_compiled, only_views, operator

Shape = Sequence[int]

ALLOCATE = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
"""Operators that return memory without writing it."""


def count_flops(fn: Callable[[], object]) -> int:
    """FLOP of one call of ``fn``, including a backward pass. ``fn`` really runs, with its side effects.

    A compiled function runs eagerly here, so the count is the network's, not the compiler's. Otherwise one call of a
    compiled function under a dispatch mode would make torch run it eagerly for the rest of the process.
    """
    counter = FlopCounterMode(display=False, custom_mapping=_FORMULAS)
    counter.mod_tracker = _NoModules()
    if may_have_compiled():
        with torch.compiler.set_stance("force_eager"), counter:
            fn()
    else:
        with counter:
            mode: Any = counter.mode
            mode.__class__ = _without_compiler(type(mode))
            fn()
        if may_have_compiled():
            torch.compiler.reset()  # so that what ``fn`` compiled in its call runs compiled from now on
    return int(counter.get_total_flops())


def _without_compiler(mode: Any) -> Any:
    """A class as ``mode``, whose calls do not import torch's compiler to be kept from it."""
    derived: Any = type(mode.__name__, (mode,), {})
    derived.__torch_dispatch__ = inspect.unwrap(mode.__torch_dispatch__)
    return derived


class _NoModules(ModuleTracker):
    """Counts for no module, only for the whole.

    Torch's own tracker hooks the inputs of every module. Where such an input is a parameter, as in spectral norm, the
    hook makes ``torch.autograd.grad`` raise.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """No hook to remove."""


def multiply_adds(flops: float) -> float:
    """``flops`` in multiply-adds, the unit that tables of published networks call FLOPs."""
    return flops / 2


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Scores Q·Kᵀ, then scores·V."""
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(grad_out: Shape, query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """The scores again, then the gradients of the scores, V, Q and K."""
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


def _recurrent(x: Shape, matrices: Sequence[Shape]) -> int:
    """Every step of every sequence is multiplied by every weight matrix once: 2 · tokens · Σ elements."""
    return 2 * math.prod(x[:-1]) * sum(math.prod(shape) for shape in matrices if len(shape) == 2)


def _onednn_layer(x: Shape, w_ih: Shape, w_hh: Shape, *_: Any, **__: Any) -> int:
    return _recurrent(x, (w_ih, w_hh))


def _cudnn_layers(x: Shape, weights: Sequence[Shape], *_: Any, **__: Any) -> int:
    return _recurrent(x, weights)


def _doubled(formula: Callable[..., int]) -> Callable[..., int]:
    """Backward is two products for each of forward's: the gradients of the input and of the weight."""
    return lambda *args, **kwargs: 2 * formula(*args, **kwargs)


_FORMULAS: dict[Any, Callable[..., int]] = {
    operator("scaled_dot_product_flash_attention_for_cpu"): _attention,
    operator("scaled_dot_product_flash_attention_for_cpu_backward"): _attention_backward,
    torch.ops.aten.mkldnn_rnn_layer: _onednn_layer,
    torch.ops.aten.mkldnn_rnn_layer_backward: _doubled(_onednn_layer),
    operator("cudnn_rnn"): _cudnn_layers,
    operator("cudnn_rnn_backward"): _doubled(_cudnn_layers),
}


class Operations(NamedTuple):
    """Counts of one step: operators called, kernels started, bytes of tensors read and written by these."""

    operator_calls: int
    kernel_launches: int
    bytes_moved: int


def count_operations(step: Callable[[], object]) -> Operations:
    """The counts of one call of ``step``, which really runs, with its side effects. Compiled functions run eagerly."""

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
    return not only_views(function) and function.overloadpacket.__name__ not in ALLOCATE


def tensors_in(values: Iterable[Any]) -> Iterator[Any]:
    """The tensors in nested lists and tuples; each occurrence once."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
