"""Layers as users have them, for ``highway-bench advise user_layers:NAME``: functions from a width to modules."""

from __future__ import annotations

from torch import Tensor, nn


def feed_forward(width: int) -> nn.Module:
    """The feed-forward part of PyTorch's own transformer layer."""
    layer = nn.TransformerEncoderLayer(width, nhead=1, dim_feedforward=4 * width)
    return nn.Sequential(layer.linear1, nn.ReLU(), layer.linear2)


def normed_convolution(width: int) -> nn.Module:
    """A convolution with a batch norm."""
    return nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


class SelfAttention(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return y


def attention_and_mlp(width: int) -> tuple[nn.Module, nn.Module]:
    """Two modules, each of which gets a connection of its own."""
    return SelfAttention(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
