"""Memory: bytes that a network's step saves for the backward pass, and the peak of bytes alive.

Saved bytes are the sizes of the tensors' storages, each counted once and whole (a saved view keeps its whole storage
alive). The peak comes from one of three meters:

- ``tracker`` (a CPU, eager): torch's tracker of live tensors. Deterministic; it does not see the scratch buffers that
  kernels allocate and free inside one operator.
- ``profiler`` (a CPU, compiled): the allocator's events. It sees scratch buffers too (for a convolution the
  peak was 50 % higher), so compare a compiled peak with an eager one only if both are from this meter.
- ``allocator`` (CUDA): the bytes requested from the caching allocator. Its blocks may be larger; by how much depends on
  what ran before.

With all three the peak is the memory that the step has at its start (parameters, buffers, optimiser state, inputs) plus
the highest rise during the step. Other memory of the process is not counted, including cuBLAS's workspace once it
exists.

The tracker must not measure compiled code. A compiled function called under a tracker runs eagerly, so the peak is the
eager one, and (observed with torch 2.13) its code stays eager for the rest of the process. The tracker therefore
refuses code that it recognises as compiled, and disables compilation while it runs.
"""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.profiler import ProfilerActivity, profile

from ..errors import BadInput
from .torch_internals import MEM_TRACKER, is_compiled

Meter = Literal["tracker", "profiler", "allocator"]
Held = nn.Module | Optimizer | Tensor


@dataclass(frozen=True, kw_only=True)
class MemoryReport:
    """Bytes of one step of training, or of a forward pass alone.

    ``saved_activations`` is what autograd saves between forward and backward, without parameters, buffers and
    ``inputs``, which exist in any case; ``peak`` includes all of these. ``gradients``, ``optimiser_state`` and
    ``saved_activations`` are 0 for a forward pass without gradients, ``optimiser_state`` also without an optimiser.
    """

    parameter_bytes: int
    buffers: int
    inputs: int
    gradients: int
    optimiser_state: int
    saved_activations: int
    peak: int
    meter: Meter


def measure_memory(
    model: nn.Module,
    forward: Callable[[], Tensor],
    *,
    optimiser: Optimizer | None = None,
    inputs: Iterable[Tensor] = (),
    backward: bool = True,
    compiled: bool = False,
    meter: Meter | None = None,
) -> MemoryReport:
    """Measure a step of ``model``: ``forward()``, and with ``backward`` its gradients and the optimiser's update.

    ``forward`` calls the model once and returns a scalar loss (any tensor without ``backward``, which then runs under
    ``no_grad``). ``inputs`` are the tensors it reads: input and target. The step is one of the steady state: at its
    start there are no gradients, and the optimiser's state exists. By default, the device and ``compiled`` (whether
    ``forward`` runs compiled code) decide the ``meter``.

    The step runs twice and the forward pass three times, so an optimiser changes the weights by two steps; the result
    does not depend on their values. Gradients are ``None`` afterwards. Raises ``BadInput`` for a meter that cannot
    measure here, and for a loss that is not a scalar.
    """
    inputs = list(inputs)
    compiled = compiled or any(map(is_compiled, model.modules()))
    device = next((tensor.device for tensor in [*model.parameters(), *inputs]), torch.device("cpu"))
    meter = meter or ("allocator" if device.type == "cuda" else "profiler" if compiled else "tracker")
    if (meter == "allocator") != (device.type == "cuda"):
        raise BadInput(f"the {meter} does not measure memory of {device.type}")
    if meter == "tracker" and compiled:
        raise BadInput("the tracker cannot measure compiled code; use the profiler")
    if optimiser is not None and not backward:
        raise BadInput("an optimiser's step needs backward")

    def update() -> None:
        if optimiser is not None:
            optimiser.step()
        model.zero_grad(set_to_none=True)

    def step() -> None:
        if backward:
            _loss(forward).backward()
            update()
        else:
            with torch.no_grad():
                forward()

    model.zero_grad(set_to_none=True)
    gradients = saved = 0
    if backward:
        _loss(forward).backward()
        gradients = storage_bytes(p.grad for p in model.parameters() if p.grad is not None)
        update()
        with torch.enable_grad():
            saved = saved_activations(forward, exclude=(model, *inputs))
    else:
        step()  # lazy set-up, compilation included
    held: list[Held] = [model, *inputs] if optimiser is None else [model, optimiser, *inputs]
    peak = PEAKS[meter](step, held)
    return MemoryReport(
        parameter_bytes=storage_bytes(model.parameters()),
        buffers=storage_bytes(model.buffers()),
        inputs=storage_bytes(inputs),
        gradients=gradients,
        optimiser_state=storage_bytes(_tensors(optimiser)) if optimiser else 0,
        saved_activations=saved,
        peak=peak,
        meter=meter,
    )


def saved_activations(forward: Callable[[], object], *, exclude: Iterable[Held] = ()) -> int:
    """Bytes that autograd saves for the backward pass while ``forward``'s result is alive, without those of
    ``exclude``.

    Each storage counts once, at its whole size, and only if it is still saved when ``forward`` returns. For compiled
    graphs, the tensors that the graph saves count, after recomputation. Not counted: tensors that a custom function
    saves without ``save_for_backward``, and tensors in a checkpoint's closure.
    """
    alive: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def pack(tensor: Tensor) -> _Saved:
        saved = _Saved(tensor)
        alive.add(saved)
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved.tensor):
        result = forward()
    own = {_storage_key(tensor) for tensor in _all_tensors(exclude)}
    total = storage_bytes(saved.tensor for saved in alive if _storage_key(saved.tensor) not in own)
    del result  # the graph is alive until here
    return total


def profiler_peak(step: Callable[[], object], held: Sequence[Held] = ()) -> int:
    """Peak bytes on the CPU during ``step``, compiled or not: ``held`` before it, plus the highest rise.

    Call ``step`` at least once before, so that compilation and lazy set-up do not count.
    """
    before = storage_bytes(_all_tensors(held))
    # Read when the first profiler of a process starts. Without it torch 2.13 writes two lines to stderr per profile.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    results = profiled.profiler.kineto_results if profiled.profiler is not None else None
    if results is None:
        raise RuntimeError("the profiler gave no results")
    events = [
        (event.start_ns(), event.nbytes())
        for event in results.events()
        if event.name() == "[memory]" and event.device_type().name == "CPU"
    ]
    live = highest = 0
    for _, change in sorted(events, key=lambda event: event[0]):
        live += change
        highest = max(highest, live)
    return before + highest


def tracker_peak(step: Callable[[], object], held: Sequence[Held] = ()) -> int:
    """Peak bytes of live tensors on the CPU during an eager ``step``, those of ``held`` included."""
    base: Any = MEM_TRACKER.needed()  # here: its import takes as long as torch's

    class Tracker(base):  # type: ignore[misc]
        """Leaves out the hooks that tell gradients from other tensors: a frozen parameter cannot have one."""

        def _track_module_params_and_buffers(
            self, module: nn.Module, install_grad_hooks: bool = False
        ) -> tuple[int, int]:
            counted: tuple[int, int] = super()._track_module_params_and_buffers(module, install_grad_hooks=False)
            return counted

    tracker = Tracker()
    tracker.track_external(*held)
    # Compilation is disabled: a compiled function called under a dispatch mode would never run compiled again.
    with torch.compiler.set_stance("force_eager"), tracker:
        step()
    peak = tracker.get_tracker_snapshot("peak").get(torch.device("cpu"), {})
    return max(int(peak.get("Total", 0)), storage_bytes(_all_tensors(held)))


def allocator_peak(step: Callable[[], object], held: Sequence[Held]) -> int:
    """Peak bytes on the CUDA device of ``held`` during ``step``: ``held`` before it, plus the highest rise of what was
    requested."""
    device = next(_all_tensors(held)).device
    gc.collect()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_stats(device)["requested_bytes.all.current"]
    step()
    torch.cuda.synchronize(device)
    highest = int(torch.cuda.memory_stats(device)["requested_bytes.all.peak"])
    return storage_bytes(_all_tensors(held)) + highest - int(before)


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the storages behind ``tensors``, each storage once."""
    return sum({_storage_key(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


class _Saved:
    """Represents a saved tensor in the graph. It lives exactly as long as the graph needs the tensor."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


PEAKS: dict[Meter, Callable[[Callable[[], object], Sequence[Held]], int]] = {
    "tracker": tracker_peak,
    "profiler": profiler_peak,
    "allocator": allocator_peak,
}


def _loss(forward: Callable[[], Tensor]) -> Tensor:
    loss = forward()
    if loss.numel() != 1:
        raise BadInput(f"forward must return a scalar loss, not a tensor of shape {tuple(loss.shape)}")
    return loss


def _storage_key(tensor: Tensor) -> tuple[torch.device, int]:
    return tensor.device, tensor.untyped_storage().data_ptr()


def _tensors(held: Held) -> Iterator[Tensor]:
    """The tensors that a module (with gradients), an optimiser or a tensor holds."""
    if isinstance(held, nn.Module):
        for parameter in held.parameters():
            yield parameter
            if parameter.grad is not None:
                yield parameter.grad
        yield from held.buffers()
    elif isinstance(held, Optimizer):
        for state in held.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))
    else:
        yield held


def _all_tensors(held: Iterable[Held]) -> Iterator[Tensor]:
    for item in held:
        yield from _tensors(item)
