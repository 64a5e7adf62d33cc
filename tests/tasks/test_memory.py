"""Memory: bytes by hand for dense stacks, twice the same, and by phase."""

import pytest

from highway_bench.cell import PHASES
from highway_bench.tasks import Skip, tasks
from tests.cells import cell, run, scalars
from tests.combinations import CORE, combinations, families_of

TASK = tasks.get("memory")
WIDTH, DEPTH, BATCH, FLOAT = 8, 3, 4, 4
STREAM = BATCH * WIDTH * FLOAT
LAYER = (WIDTH * WIDTH + WIDTH) * FLOAT


def measured(block="highway", family="dense", **changes):
    return scalars(run(cell("memory", block, family, **changes)))


@pytest.mark.parametrize(("block", "family"), combinations())
def test_every_combination(block, family):
    one = cell("memory", block, family, phase="train-step", seq_len=5)
    work = TASK.prepare(one)
    first = scalars(run(one, work))
    if family == "dense":
        assert first == scalars(run(one))
    assert set(first) == {metric.name for metric in TASK.metrics}
    params = FLOAT * work.params
    assert first["parameter_bytes"] == first["gradients"] == first["optimiser_state"] == params
    assert first["saved_per_layer"] == first["saved_activations"] / 2
    # Weights, momentum, gradients and the saved activations are not all alive at once, but weights and momentum are.
    assert first["peak"] > 2 * params + first["saved_activations"]


def test_a_plain_dense_stack_by_hand():
    """Every ReLU saves its output, which is also the next layer's input. The first input is held in any case."""
    result = measured("plain", phase="train-step", depth=DEPTH)
    assert result["parameter_bytes"] == result["gradients"] == result["optimiser_state"] == DEPTH * LAYER
    assert result["saved_activations"] == DEPTH * STREAM
    assert result["saved_per_layer"] == STREAM


def test_a_residual_dense_stack_by_hand():
    """ReLU's output and, from the second layer on, the layer's input, which is a new tensor, the sum."""
    result = measured("residual", depth=DEPTH)
    assert result["saved_activations"] == (2 * DEPTH - 1) * STREAM


@pytest.mark.parametrize("block", [*CORE, "dense-average", "attn-residual", "x0-mix", "mhc"])
def test_saved_activations_grow_by_the_layer(block):
    family = families_of(block)[0]
    three, four, five = (measured(block, family, depth=depth)["saved_activations"] for depth in (3, 4, 5))
    if block in ("dense-average", "attn-residual"):  # each layer reads all before it
        assert five - four >= four - three > 0
    else:
        assert five - four == four - three > 0


def test_phases():
    forward, backward, step = (measured(phase=phase) for phase in PHASES)
    assert (forward["gradients"], forward["optimiser_state"], forward["saved_activations"]) == (0, 0, 0)
    assert backward["optimiser_state"] == 0
    weights = step["parameter_bytes"]
    assert forward["parameter_bytes"] == backward["parameter_bytes"] == weights == step["optimiser_state"]
    assert forward["peak"] < backward["peak"] < step["peak"]


def test_a_wider_dtype_takes_twice_the_bytes():
    single, double = (measured(dtype=dtype) for dtype in ("float32", "float64"))
    for name in ("parameter_bytes", "gradients", "saved_activations", "peak"):
        assert double[name] == pytest.approx(2 * single[name], abs=16)  # the loss is a scalar in both


def test_a_replayed_graph_is_skipped():
    with pytest.raises(Skip, match="eager"):
        TASK.prepare(cell("memory", mode="cudagraph"))
