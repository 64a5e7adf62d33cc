"""The lesion curve: the loss and error of a trained network without one of its layers (arXiv:1507.06228, §4.2)."""

from __future__ import annotations

from torch import nn

from highway_bench.analysis.lesion import carried_path, cut_out
from highway_bench.data import Split
from highway_bench.data.base import TargetKind
from highway_bench.tasks._gated_layers import layer_positions
from highway_bench.training.evaluation import evaluate


def lesions(network: nn.Module, split: Split, kind: TargetKind) -> dict[str, dict[int, float | None]]:
    """By metric and layer, loss and error over ``split`` without that layer; layers that carry nothing are left out."""
    values: dict[str, dict[int, float | None]] = {"lesion_loss": {}, "lesion_error": {}}
    for layer, (modules, index) in enumerate(layer_positions(network), start=1):
        if carried_path(modules[index]) is not None:
            with cut_out(modules, index):
                evaluation = evaluate(network, split, kind)
            values["lesion_loss"][layer] = evaluation.loss
            if kind != "scalar":
                values["lesion_error"][layer] = evaluation.error
    return values
