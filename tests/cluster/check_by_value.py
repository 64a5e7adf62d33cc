"""What no module defines is measured on a cluster as it is here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import highway_bench as hb
from highway_bench.plan.grid import Grid, Sizes
from highway_bench.plan.profiles import Profile

CELL = """
import torch
from torch import nn

def helper(x):
    return torch.tanh(x)

class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.map = nn.Linear(width, width)

    def forward(self, x):
        return helper(self.map(x))
"""
SIZES = Sizes({"vector": 8}, {"vector": 16})
RECIPE = {"optimiser": "sgd", "rate": 0.1, "momentum": 0.9, "decay": 1.0, "steps": 5, "threshold": 0.1}
TRAINED = Grid(task="trainability", families=("dense",), on_cpu=SIZES, dataset="digits", recipe=RECIPE, depths=(2,))


def test_a_cells_layer_has_the_losses_that_it_has_here(cluster: Any, tmp_path: Path) -> None:
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(CELL, scope)
    profile = Profile("tiny", "", (TRAINED,))
    words: dict[str, Any] = {"profile": profile, "family": scope["Layer"], "block": "residual", "workers": 1}
    there, here = (
        hb.run(engine=engine, store=tmp_path / f"{engine}.sqlite", **words).rows for engine in ("ray", "local")
    )
    losses = [rows.loc[rows["metric"] == "loss", "value"].tolist() for rows in (there, here)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 5
