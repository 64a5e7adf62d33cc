"""An encoder and a decoder with tied weights: the second one's matrix is the first one's, transposed."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Encoder(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(self.map(x))


class Decoder(nn.Module):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.weight = encoder.map.weight
        self.bias = nn.Parameter(encoder.map.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.T, self.bias)


def layer(width):
    encoder = Encoder(width)
    return [encoder, Decoder(encoder)]
