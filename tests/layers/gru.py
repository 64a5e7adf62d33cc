"""torch's GRU as it is: it returns the outputs and its last state."""

from torch import nn


def layer(width):
    return nn.GRU(width, width, batch_first=True)
