"""The bidirectional LSTM as a transform: each direction has half the width."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from highway_bench.families._site import Site
from highway_bench.families.base import Transform, register_family
from highway_bench.families.padding import ReadsLengths


class BiLstmTransform(ReadsLengths):
    """(batch, steps, in) → (batch, steps, width): the concatenated hidden states of both directions, from zero states.

    Where the network sets the items' ``lengths``, the backward direction starts at each item's own last step, and the
    output at padding has no meaning. Otherwise it starts at the last step of the batch.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width // 2, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.lengths is None:
            return self.both_directions(x)
        # The CPU's fused kernel takes no packed sequences, and a step without it takes about twice the time.
        return self.packed(x, self.lengths) if x.is_cuda else self.reversed_items(x, self.lengths)

    def both_directions(self, x: Tensor) -> Tensor:
        """What ``self.lstm`` computes, without its checks of shapes, which take a share of a small layer's time."""
        weights: list[Tensor] = [weight for of_direction in self.lstm.all_weights for weight in of_direction]
        zeros = x.new_zeros(2, x.shape[0], self.lstm.hidden_size)  # of hidden and cell state
        return torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, self.lstm.training, True, True)[0]

    def packed(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Both directions over the items' own steps, as packed sequences."""
        states = self.lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))[0]
        return pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])[0]

    def reversed_items(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Equal to ``packed`` at an item's own steps: the backward direction reads each item in reverse order."""
        steps = torch.arange(x.shape[1])
        mirrored = lengths.unsqueeze(-1) - 1 - steps
        order = torch.where(mirrored >= 0, mirrored, steps).to(x.device).unsqueeze(-1)
        forwards = self.one_direction(x, "l0")
        backwards = self.one_direction(x.gather(1, order.expand_as(x)), "l0_reverse")
        return torch.cat((forwards, backwards.gather(1, order.expand_as(backwards))), dim=-1)

    def one_direction(self, x: Tensor, suffix: str) -> Tensor:
        """Hidden states of the LSTM with the weights of this ``suffix``, from the first step to the last."""
        weights = [getattr(self.lstm, f"{name}_{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
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
    """H(x) = the concatenated hidden states of a forward and a backward LSTM, width/2 each; (batch, steps, width).

    By default, weights have torch's own initialisation (uniform within ±1/√hidden). With ``init="orthogonal"`` the
    matrix of every gate is orthogonal; with ``scaled-branch`` H is multiplied by 1/√L. ``nn.LSTM`` has no batching
    rule, so this family does not run under ``vmap``, and ``torch.compile`` runs it eagerly.
    """

    kind = "sequence"
    own_yardstick = "lstm"
    order = 5
    inits = ("default", "orthogonal", "scaled-branch")
    vmap = False
    one_graph = False

    @property
    def width_step(self) -> int:
        return 2

    def transform(self, site: Site, *, gain: float = 1.0, inner_gain: float = 1.0) -> nn.Module:
        module = BiLstmTransform(site.in_width, site.width)
        if self.init == "orthogonal":
            for name, parameter in module.lstm.named_parameters():
                if name.startswith("weight"):
                    for gate in parameter.data.chunk(4):
                        nn.init.orthogonal_(gate)
                else:
                    nn.init.zeros_(parameter)
        return self.scaled(module, site, gain)

    def transform_parameters(self, width: int) -> int:
        hidden = width // 2
        return 2 * 4 * (hidden * width + hidden * hidden + 2 * hidden)

    def transform_flops(self, width: int, positions: int) -> int:
        hidden = width // 2
        return 2 * 2 * 4 * (hidden * width + hidden * hidden) * positions
