"""Yard-sticks: stacks of torch's own layers, one for each kind of work, against which every step is timed.

A machine's speed changes from hour to hour and commit to commit. A step's time divided by a yard-stick's, timed in turn
in the same process, hardly does. A yard-stick contains nothing of this package, so no change of the package moves it.
**This file is frozen**: a test pins its contents, because a change would break every series of the history. It imports
nothing else of the package, so that a benchmark of an older commit can load it too.

``linear`` is y = relu(Wx + b), ``convolution`` the same with a 3×3 kernel, ``lstm`` a bidirectional LSTM, and
``attention`` multi-head self-attention; each is repeated over the depth at one width.
"""

from __future__ import annotations

from typing import Any

KINDS = ("linear", "convolution", "lstm", "attention")
HEADS = 4  # of attention, or one head where the width is no multiple of it
RATE = 1e-3


def stack(kind: str, width: int, depth: int) -> Any:
    """The yard-stick's network as an ``nn.Module``; raises ``ValueError`` for another kind than ``KINDS``."""
    from torch import nn

    if kind == "linear":
        return nn.Sequential(*(layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())))
    if kind == "convolution":
        return nn.Sequential(
            *(layer for _ in range(depth) for layer in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU()))
        )
    if kind == "lstm":
        return nn.LSTM(width, max(1, width // 2), depth, batch_first=True, bidirectional=True)
    if kind == "attention":
        heads = HEADS if width % HEADS == 0 else 1
        return nn.ModuleList(nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(depth))
    raise ValueError(f"unknown yard-stick {kind!r}; known: {', '.join(KINDS)}")


class YardstickStep:
    """A step of a yard-stick on the input ``x``, which has ``width`` features, in a phase.

    ``forward`` evaluates without gradients, ``forward-backward`` also computes the gradient of every parameter, and
    ``train-step`` also updates them by SGD with momentum. ``step`` synchronises its device at its end; ``restore``
    restores the parameters after a training step.
    """

    def __init__(self, kind: str, width: int, depth: int, x: Any, phase: str) -> None:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.network = stack(kind, width, depth).to(device=x.device, dtype=x.dtype)
        self.network.train(phase != "forward")
        self.kind, self.phase, self.x = kind, phase, x
        self.parameters = list(self.network.parameters())
        self.start = [parameter.detach().clone() for parameter in self.parameters] if phase == "train-step" else []
        self.optimiser = torch.optim.SGD(self.parameters, lr=RATE, momentum=0.9)
        with torch.no_grad():
            self.cotangent = torch.ones_like(self.output())

    def output(self) -> Any:
        """The network's output for ``x``."""
        if self.kind == "lstm":
            return self.network(self.x)[0]
        if self.kind == "attention":
            y = self.x
            for layer in self.network:
                y = layer(y, y, y, need_weights=False)[0]
            return y
        return self.network(self.x)

    def step(self) -> None:
        """One step of the phase."""
        import torch

        if self.phase == "forward":
            with torch.no_grad():
                self.output()
        elif self.phase == "forward-backward":
            torch.autograd.grad(self.output(), self.parameters, self.cotangent)
        else:
            self.optimiser.zero_grad(set_to_none=True)
            self.output().backward(self.cotangent)
            self.optimiser.step()
        if self.x.is_cuda:
            torch.cuda.synchronize(self.x.device)

    def restore(self) -> None:
        """Restore the starting weights and set the momenta to zero."""
        import torch

        with torch.no_grad():
            for parameter, start in zip(self.parameters, self.start, strict=False):
                parameter.copy_(start)
        for state in self.optimiser.state.values():
            state["momentum_buffer"].zero_()
