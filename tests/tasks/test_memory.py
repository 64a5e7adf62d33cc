"""Memory: bytes by hand for dense stacks, twice the same, and by phase."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from highway_bench.cell import Cell
from highway_bench.tasks import Skip, tasks
from tests.combinations import CORE, combinations, families_of

MakeCell = Callable[..., Cell]
TASK = tasks.get("memory")
WIDTH, DEPTH, BATCH, FLOAT = 8, 3, 4, 4
STREAM = BATCH * WIDTH * FLOAT
LAYER = (WIDTH * WIDTH + WIDTH) * FLOAT


def measured(one: Cell) -> dict[str, float | None]:
    work = TASK.prepare(one)
    return {measurement.metric: measurement.value for measurement in TASK.measurements(work, one)}


@pytest.mark.parametrize(("block", "family"), combinations())
def test_every_combination(cell: MakeCell, block: str, family: str) -> None:
    one = cell("memory", block, family, phase="train-step", seq_len=5)
    work = TASK.prepare(one)
    first = {m.metric: m.value for m in TASK.measurements(work, one)}
    if family == "dense":
        assert first == measured(one)
    assert set(first) == {metric.name for metric in TASK.metrics}
    params = FLOAT * work.params
    assert first["parameter_bytes"] == first["gradients"] == first["optimiser_state"] == params
    assert first["saved_per_layer"] == first["saved_activations"] / 2
    # Weights, momentum, gradients and the saved activations are not all alive at once, but weights and momentum are.
    assert first["peak"] > 2 * params + first["saved_activations"]


def test_a_plain_dense_stack_by_hand(cell: MakeCell) -> None:
    """Every ReLU saves its output, which is also the next layer's input. The first input is held in any case."""
    result = measured(cell("memory", "plain", phase="train-step", depth=DEPTH))
    assert result["parameter_bytes"] == result["gradients"] == result["optimiser_state"] == DEPTH * LAYER
    assert result["saved_activations"] == DEPTH * STREAM
    assert result["saved_per_layer"] == STREAM


def test_a_residual_dense_stack_by_hand(cell: MakeCell) -> None:
    """ReLU's output and, from the second layer on, the layer's input, which is a new tensor, the sum."""
    result = measured(cell("memory", "residual", depth=DEPTH))
    assert result["saved_activations"] == (2 * DEPTH - 1) * STREAM


@pytest.mark.parametrize("block", [*CORE, "dense-average", "attn-residual", "x0-mix", "mhc"])
def test_saved_activations_grow_by_the_layer(cell: MakeCell, block: str) -> None:
    family = families_of(block)[0]
    three, four, five = (
        float(measured(cell("memory", block, family, depth=depth))["saved_activations"] or 0) for depth in (3, 4, 5)
    )
    if block in ("dense-average", "attn-residual"):  # each layer reads all before it
        assert five - four >= four - three > 0
    else:
        assert five - four == four - three > 0


def test_phases(cell: MakeCell) -> None:
    forward, backward, step = (
        measured(cell("memory", phase=phase)) for phase in ("forward", "forward-backward", "train-step")
    )
    assert (forward["gradients"], forward["optimiser_state"], forward["saved_activations"]) == (0, 0, 0)
    assert backward["optimiser_state"] == 0
    weights = step["parameter_bytes"]
    assert forward["parameter_bytes"] == backward["parameter_bytes"] == weights == step["optimiser_state"]
    assert float(forward["peak"] or 0) < float(backward["peak"] or 0) < float(step["peak"] or 0)


def test_a_wider_dtype_takes_twice_the_bytes(cell: MakeCell) -> None:
    single, double = (measured(cell("memory", dtype=dtype)) for dtype in ("float32", "float64"))
    for name in ("parameter_bytes", "gradients", "saved_activations", "peak"):
        assert double[name] == pytest.approx(2 * float(single[name] or 0), abs=16)  # the loss is a scalar in both


def test_a_replayed_graph_is_skipped(cell: MakeCell) -> None:
    with pytest.raises(Skip, match="eager"):
        TASK.prepare(cell("memory", mode="cudagraph"))
