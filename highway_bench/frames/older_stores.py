"""Defaults for rows whose runs describe nothing: those of version 0.1.0, and frames without runs.

Blocks, families and metrics declare these facts themselves, and each run records them in its store
(``execution/record.py``). New entries need nothing here.
"""

from __future__ import annotations

import math
from typing import Final

BASELINE: Final = "plain"
"""The block that is the denominator of every ratio."""

BLOCKS: Final = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm")
"""Blocks in the order of print."""

FAMILIES: Final = ("dense", "dense-pair", "conv", "conv-pair", "bilstm", "mlp", "attention", "transformer")
"""Families in the order of print."""

BRANCHES: Final = {"dense-pair": "dense", "conv-pair": "conv"}
"""For a family whose branch has two affine maps, the family with one."""

CHANCE: Final = {"digits": math.log(10), "mnist-5k": math.log(10)}
"""Losses of the best constant prediction, in nat."""

PERCENTAGES: Final = frozenset(
    {
        "intact_error",
        "lesion_error",
        "gate_activity",
        "gates_shut",
        "gates_full",
        "gates_open_one",
        "gates_open_average",
        "gates_open_some",
        "gate_saturation",
        "train_accuracy",
        "test_accuracy",
        "epoch_test_accuracy",
        "budget_mismatch",
    }
)
"""Metrics of unit 1 that are printed as percentages."""
