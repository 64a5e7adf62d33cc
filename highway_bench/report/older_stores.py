"""What older stores do not say of themselves.

The runs of a store describe its blocks, families and metrics (``execution/descriptions.py``), and a report reads them
there. Stores that were written before a description had a field get it from here, by name. A block, family or metric
that is missing here comes after those that are listed, under its own name.
"""

from __future__ import annotations

from typing import Final

YARDSTICK: Final = "plain"
"""The block that ratios are taken to."""

BLOCKS: Final = ("plain", "highway", "highway-free", "residual", "pre-norm", "post-norm")
"""Blocks in the order in which they are listed and drawn."""

FAMILIES: Final = ("dense", "dense-pair", "conv", "conv-pair", "bilstm", "mlp", "attention", "transformer")
"""Families in the order in which they are listed."""

BRANCHES: Final = {"dense-pair": "dense", "conv-pair": "conv"}
"""Families whose branch has two affine maps, by the family with one. Other families are compared with themselves."""

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
"""Metrics of unit 1 that are read as percentages."""

LABELS: Final = {
    "intact_loss": ("training loss", "after training, over the whole training set"),
    "intact_error": ("training error", "after training, over the whole training set"),
    "gate_bias_start": ("gate bias, start", "mean over units"),
    "gate_bias_end": ("gate bias, end", "mean over units"),
    "gate_activity": ("mean T", "of the transform gate over items and units"),
    "gates_shut": ("gates shut", "units whose mean T over items is below 0.05"),
    "gates_full": ("shortcuts closed", "units and items with T > 0.95, where C = 1 − T < 0.05"),
    "gates_open_one": ("open for one", "units with T > 0.5 for one item, the mean over items"),
    "gates_open_average": ("open on average", "units whose mean T over items is above 0.5"),
    "gates_open_some": ("open for some", "units with T > 0.5 for an item in a hundred or more"),
    "gate_class_spread": ("class spread", "standard deviation of T's class means, the mean over units"),
    "sparsity_one": ("sparsity for one", "Hoyer's, of all gates for one item: 0 where equal, 1 where one is on"),
    "sparsity_average": ("sparsity on average", "Hoyer's, of the gates' means over items"),
    "stream_change": ("‖Δx‖ / ‖x‖", "how much a layer changes what it is given"),
    "lesion_loss": ("loss without it", "training loss with this layer cut out"),
    "lesion_error": ("error without it", "training error with this layer cut out"),
    "budget_mismatch": ("parameters off", "what rounding of widths leaves"),
    "update": ("‖ΔW‖ / ‖W‖", "of the first steps of training"),
    "together": ("trained together", "networks that were trained as one"),
}
"""A metric's heading and what it is."""
