"""The bidirectional LSTM: its two directions together give the width back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from highway_bench.errors import BadInput
from highway_bench.families._site import Site
from highway_bench.families.base import Transform, register_family
from highway_bench.families.padding import ReadsLengths


class BiLstmTransform(ReadsLengths):
    """(batch, steps, in) → (batch, steps, width): hidden states of both directions side by side, from zero states.

    Where a network tells the items' ``lengths``, the backward direction starts at each item's own last step, and what
    stands at padding means nothing; else it starts at the batch's last step.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.lengths is None:
            hidden: Tensor = self.lstm(x)[0]
            return hidden
        # The CPU's fused kernel takes no packed sequences, and without it a step takes about twice the time.
        return self.packed(x, self.lengths) if x.is_cuda else self.turned(x, self.lengths)

    def packed(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Both directions over the items' own steps, as packed sequences."""
        states = self.lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[0]
        return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]

    def turned(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The same at an item's own steps: both directions read forwards, the second one the items turned around."""
        steps = torch.arange(x.shape[1])
        mirrored = lengths.unsqueeze(-1) - 1 - steps
        places = torch.where(mirrored >= 0, mirrored, steps).to(x.device).unsqueeze(-1)
        there = self.one_way(x, "l0")
        back = self.one_way(x.gather(1, places.expand_as(x)), "l0_reverse")
        return torch.cat((there, back.gather(1, places.expand_as(back))), dim=-1)

    def one_way(self, x: Tensor, way: str) -> Tensor:
        """The states of one direction's weights, read from the first step on."""
        weights = [getattr(self.lstm, f"{name}_{way}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        zeros = x.new_zeros(1, x.shape[0], self.lstm.hidden_size)
        return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, self.training, False, True)[0]


@register_family(
    "bilstm",
    transform="H(x) = [LSTM→(x); LSTM←(x)]",
    summary="bidirectional LSTM, half the width a way",
    source="Schuster and Paliwal 1997; Hochreiter and Schmidhuber 1997",
)
@dataclass(frozen=True, kw_only=True)
class BiLstm(Transform):
    """H(x) = the hidden states of an LSTM read forwards and one read backwards, width/2 each, concatenated.

    Weights start as torch's own (uniform within ±1/√hidden) or, with ``init="orthogonal"``, every gate's matrix
    orthogonal. ``nn.LSTM`` has no batching rule, so this family does not run under ``vmap``, and ``torch.compile``
    leaves it to eager code.
    """

    kind = "sequence"
    order = 5
    inits = ("default", "orthogonal")
    vmap = False
    one_graph = False

    @property
    def width_step(self) -> int:
        return 2

    def transform(self, site: Site) -> nn.Module:
        if site.stride != 1:
            raise BadInput("family 'bilstm' has no places to stride over")
        module = BiLstmTransform(site.in_width, site.width)
        if self.init == "orthogonal":
            for name, parameter in module.lstm.named_parameters():
                if name.startswith("weight"):
                    for gate in parameter.data.chunk(4):
                        nn.init.orthogonal_(gate)
                else:
                    nn.init.zeros_(parameter)
        return module

    def transform_parameters(self, width: int) -> int:
        hidden = width // 2
        return 2 * 4 * (hidden * width + hidden * hidden + 2 * hidden)

    def transform_flops(self, width: int, positions: int) -> int:
        hidden = width // 2
        return 2 * 2 * 4 * (hidden * width + hidden * hidden) * positions
