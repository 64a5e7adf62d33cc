"""Every listed connection as plain torch, for layers (…, width) → (…, width) that are the user's own.

Each class is printed as it stands here, so it uses torch alone. ``transform`` is the layer H, ``layer`` its number from
1 to ``depth``. Parameters have the names of ``hb.build``'s. Arguments after ``depth`` follow from the start, as
``text`` says. A test holds outputs and gradients equal to those of ``hb.build``.
"""
# mypy: disable-error-code="no-any-return,type-arg,no-untyped-call"

from __future__ import annotations

import torch
from torch import Tensor, nn


class TorchScaled(nn.Module):
    """y = factor · module(x)."""

    def __init__(self, module: nn.Module, factor: float) -> None:
        super().__init__()
        self.module, self.factor = module, factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * self.module(x)


class TorchPlain(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.transform = transform

    def forward(self, x: Tensor) -> Tensor:
        return self.transform(x)


class TorchResidual(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.transform = transform

    def forward(self, x: Tensor) -> Tensor:
        return x + self.transform(x)


class TorchPreNorm(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform

    def forward(self, x: Tensor) -> Tensor:
        return x + self.transform(self.norm(x))


class TorchPostNorm(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.transform, self.norm = transform, nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.transform(x))


class TorchHighway(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, bias: float) -> None:
        super().__init__()
        self.transform, self.gate = transform, nn.Linear(width, width)
        nn.init.xavier_normal_(self.gate.weight)
        nn.init.constant_(self.gate.bias, bias)

    def forward(self, x: Tensor) -> Tensor:
        return torch.lerp(x, self.transform(x), torch.sigmoid(self.gate(x)))


class TorchHighwayFree(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, bias: float) -> None:
        super().__init__()
        self.transform, self.gate = transform, nn.Linear(width, 2 * width)  # transform gate and carry gate
        for part, start in enumerate((bias, -bias)):
            nn.init.xavier_normal_(self.gate.weight.data.chunk(2)[part])
            nn.init.constant_(self.gate.bias.data.chunk(2)[part], start)

    def forward(self, x: Tensor) -> Tensor:
        t, c = torch.sigmoid(self.gate(x)).chunk(2, -1)
        return self.transform(x) * t + x * c


class TorchReZero(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.transform, self.alpha = transform, nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.alpha * self.transform(x)


class TorchLayerScale(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        first = 0.1 if depth <= 18 else 1e-5 if depth <= 24 else 1e-6
        self.scale = nn.Parameter(torch.full((width,), first))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.transform(self.norm(x))


class TorchBranchScaled(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform, self.factor = nn.LayerNorm(width), transform, depth**-0.5

    def forward(self, x: Tensor) -> Tensor:
        return x + self.factor * self.transform(self.norm(x))


class TorchDeepNorm(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.transform, self.norm, self.alpha = transform, nn.LayerNorm(width), depth**0.25

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.alpha * x + self.transform(x))


class TorchNormScaled(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform, self.factor = nn.LayerNorm(width), transform, layer**-0.5

    def forward(self, x: Tensor) -> Tensor:
        return x + self.transform(self.factor * self.norm(x))


class TorchOutputNorm(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, gain: float) -> None:
        super().__init__()
        self.transform, self.norm = transform, nn.LayerNorm(width)
        nn.init.constant_(self.norm.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm(self.transform(x))


class TorchSandwichNorm(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, gain: float) -> None:
        super().__init__()
        self.norm, self.transform, self.output_norm = nn.LayerNorm(width), transform, nn.LayerNorm(width)
        nn.init.constant_(self.output_norm.weight, gain)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.output_norm(self.transform(self.norm(x)))


class TorchLayerScalar(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, gain: float) -> None:
        super().__init__()
        self.norm, self.transform, self.output_norm = nn.LayerNorm(width), transform, nn.LayerNorm(width)
        nn.init.constant_(self.output_norm.weight, gain)
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * (x + self.output_norm(self.transform(self.norm(x))))


class TorchKeel(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.alpha = float(depth) if layer > 1 else 1.0
        self.output_norm = nn.LayerNorm(width) if layer > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.output_norm(self.alpha * x + self.transform(self.norm(x)))


class TorchGruGate(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, bias: float) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.of_branch = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))
        self.of_stream = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))
        for one in (*self.of_branch, *self.of_stream):
            nn.init.xavier_normal_(one.weight)
        self.bias = nn.Parameter(torch.full((width,), -bias))

    def forward(self, x: Tensor) -> Tensor:
        u = torch.relu(self.transform(self.norm(x)))
        reset, update, candidate = (one(u) for one in self.of_branch)
        r = torch.sigmoid(reset + self.of_stream[0](x))
        z = torch.sigmoid(update + self.of_stream[1](x) + self.bias)
        return torch.lerp(x, torch.tanh(candidate + self.of_stream[2](r * x)), z)


class TorchLaurelLr(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.inward, self.outward = nn.Linear(width, 8, bias=False), nn.Linear(8, width, bias=False)
        nn.init.xavier_normal_(self.inward.weight)
        nn.init.zeros_(self.outward.weight)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.transform(self.norm(x)) + self.outward(self.inward(x))


class TorchX0Mix(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int, graded: bool) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        part = (layer - 1) / max(1, depth - 1)
        r, u = (1.15 - 0.10 * part, 0.20 - 0.15 * part) if graded else (1.0, 0.0)
        self.r, self.u = nn.Parameter(torch.tensor(r)), nn.Parameter(torch.tensor(u))

    def forward(self, state: tuple) -> tuple:
        x, first = state
        x = self.r * x + self.u * first
        return x + self.transform(self.norm(x)), first


class TorchDenseAverage(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.weights = nn.Parameter(torch.tensor([0.0] * layer + [1.0]))

    def forward(self, state: tuple) -> tuple:
        mean, *history = state
        history = [*history, mean + self.transform(self.norm(mean))]
        return sum(self.weights[i] * one for i, one in enumerate(history)), *history


class TorchDepthAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.zeros(width))

    def forward(self, sources: list) -> Tensor:
        keys = [one * torch.rsqrt(one.square().mean(-1, keepdim=True) + 1e-6) for one in sources]
        weights = torch.stack([(key * self.query).sum(-1, keepdim=True) for key in keys]).softmax(0)
        return sum(weights[i] * one for i, one in enumerate(sources))


class TorchAttentionResidual(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.mean = TorchDepthAttention(width) if layer > 1 else None
        self.norm, self.transform = nn.LayerNorm(width), transform

    def forward(self, sources: list) -> list:
        mean = sources[0] if self.mean is None else self.mean(sources)
        return [*sources, self.transform(self.norm(mean))]


class TorchHyperConnection(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.read = nn.Parameter(torch.eye(4)[(layer - 1) % 4].clone())
        self.write, self.mix = nn.Parameter(torch.ones(4)), nn.Parameter(torch.eye(4).flatten())
        self.gain, self.weights = nn.Parameter(torch.ones(width)), nn.Linear(width, 6, bias=False)
        nn.init.zeros_(self.weights.weight)
        self.read_scale, self.write_scale = (nn.Parameter(torch.tensor(0.01)) for _ in range(2))

    def forward(self, streams: Tensor) -> Tensor:  # (4, …, width)
        rms = self.gain * streams * torch.rsqrt(streams.square().mean(-1, keepdim=True) + 1e-6)
        read, write, mix = torch.tanh(self.weights(rms)).split((1, 1, 4), -1)
        ones = [4] + [1] * (streams.ndim - 1)
        read = self.read.view(ones) + self.read_scale * read
        write = self.write.view(ones) + self.write_scale * write
        mix = self.mix.view([4] + [1] * (streams.ndim - 2) + [4]) + self.read_scale * mix
        branch = self.transform(self.norm((read * streams).sum(0)))
        return torch.einsum("s...t,s...d->t...d", mix, streams) + write * branch


def logits_of(maps: nn.Linear, streams: Tensor) -> Tensor:
    together = torch.cat(streams.unbind(0), -1)
    return maps(together * torch.rsqrt(together.square().mean(-1, keepdim=True) + 1e-6))


class TorchGatedSum(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.maps, self.norm = nn.Linear(4 * width, 4, bias=False), nn.LayerNorm(width)
        nn.init.normal_(self.maps.weight, std=0.02)
        self.bias, self.scale = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.tensor(0.01))

    def forward(self, streams: Tensor) -> Tensor:
        gates = torch.sigmoid(self.scale * logits_of(self.maps, streams) + self.bias) + 1e-6
        return self.norm((gates.movedim(-1, 0).unsqueeze(-1) * streams).sum(0))


class TorchMhc(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.norm, self.transform = nn.LayerNorm(width), transform
        self.maps = nn.Linear(4 * width, 24, bias=False)
        nn.init.normal_(self.maps.weight, std=0.02)
        self.bias, self.scales = nn.Parameter(torch.zeros(24)), nn.Parameter(torch.full((3,), 0.01))

    def forward(self, streams: Tensor) -> Tensor:  # (4, …, width)
        scales = self.scales.repeat_interleave(torch.tensor([4, 4, 16], device=self.scales.device))
        logits = (scales * logits_of(self.maps, streams) + self.bias).movedim(-1, 0).unsqueeze(-1)
        read, write, mix = torch.sigmoid(logits[:4]) + 1e-6, 2 * torch.sigmoid(logits[4:8]), logits[8:]
        branch = self.transform(self.norm((read * streams).sum(0)))
        mix = mix.unflatten(0, (4, 4)).softmax(0) + 1e-6
        for step in range(39):  # rows and columns sum to 1 in turn
            mix = mix / (mix.sum(1 - step % 2, keepdim=True) + 1e-6)
        return (mix * streams).sum(1) + write * branch


class TorchGatedRead(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        rank = max(1, width // 8)
        self.gain = nn.Parameter(torch.zeros(4 * width))
        self.down, self.up = nn.Linear(4 * width, rank, bias=False), nn.Linear(rank, 4 * width, bias=False)
        for one in (self.down, self.up):
            nn.init.normal_(one.weight, std=0.02)

    def forward(self, streams: Tensor) -> tuple:
        normed = streams * torch.rsqrt(streams.square().mean(-1, keepdim=True) + 1e-6)
        u = torch.cat(normed.unbind(0), -1) * (1 + self.gain)
        gates = torch.sigmoid(self.up(nn.functional.silu(self.down(u / 4))))
        return u, (gates * u).unflatten(-1, (4, -1)).mean(-2)


class TorchGatedResidual(nn.Module):
    def __init__(self, transform: nn.Module, width: int, layer: int, depth: int) -> None:
        super().__init__()
        self.read, self.inject, self.transform = TorchGatedRead(width), nn.Linear(4 * width, 4, bias=False), transform
        nn.init.normal_(self.inject.weight, std=0.02)

    def forward(self, streams: Tensor) -> Tensor:  # (4, …, width)
        u, h = self.read(streams)
        write = 2 * torch.sigmoid(self.inject(u / 4)).movedim(-1, 0).unsqueeze(-1)
        return streams + write * self.transform(h)
