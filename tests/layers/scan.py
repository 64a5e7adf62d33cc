"""A selective state-space layer: each feature has states that decay, at a rate that depends on the input."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Scan(nn.Module):
    def __init__(self, width: int, states: int = 4) -> None:
        super().__init__()
        self.log_rate = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))
        self.step = nn.Linear(width, width)
        self.read_write = nn.Linear(width, 2 * states, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        step = functional.softplus(self.step(x))[..., None]  # batch, steps, width, 1
        write, read = self.read_write(x).chunk(2, dim=-1)
        decay = torch.exp(-self.log_rate.exp() * step)
        added = step * write[:, :, None] * x[..., None]
        state = torch.zeros_like(added[:, 0])
        outputs = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + added[:, t]
            outputs.append((state * read[:, t, None]).sum(-1))
        return self.out(torch.stack(outputs, dim=1) + self.skip * x)


layer = Scan
