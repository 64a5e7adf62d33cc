"""Signal and gradient at the start against closed forms, verdicts of each kind, and every block in every family."""

import math

import pytest
import torch

from highway_bench.blocks import blocks
from highway_bench.results.schema import Status
from highway_bench.tasks import tasks
from highway_bench.tasks._layer_measurements import profiled_layers
from highway_bench.tasks._probe import take_batch_statistics
from tests.cells import by_layer, by_place, cell, run, scalars
from tests.combinations import combinations

TASK = tasks.get("propagation")
WIDTH = 32


def start(block="plain", family="dense", **changes):
    return cell("propagation", block, family, **{"width": WIDTH, "dtype": "float64", "batch_size": 8, **changes})


def verdict(values, way):
    """Whether and where the ``way`` (signal, gradient) leaves its range."""
    for word in ("vanishes", "explodes"):
        if values[f"{way}_{word}_at"] is not None:
            return word, values[f"{way}_{word}_at"]
    return "in range", None


# ------------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("bias", [-1.0, -3.0])
@pytest.mark.parametrize("depth", [10, 50])
def test_a_highway_that_only_carries_multiplies_by_one_minus_t(bias, depth):
    """H = 0 and W_T = 0: dx_L/dx₀ = (1 − σ(b))ᴸ, forwards and backwards."""
    one = start("highway", depth=depth, block_options={"gate_bias": bias})
    work = TASK.prepare(one)
    with torch.no_grad():
        for name, parameter in work.network.named_parameters():
            if name.endswith("weight"):
                parameter.zero_()
            else:
                parameter[:WIDTH] = 0.0
    result = run(one, work)
    carried = (1 - 1 / (1 + math.exp(-bias))) ** depth
    values = scalars(result)
    assert values["gradient_ratio"] == pytest.approx(carried, rel=1e-5)
    assert values["activation_ratio"] == pytest.approx(carried, rel=1e-5)
    assert values["jacobian_largest"] == pytest.approx(carried, rel=1e-5)
    assert values["jacobian_spread"] == pytest.approx(0.0, abs=1e-9)
    assert values["gate_mean"] == pytest.approx(1 / (1 + math.exp(-bias)), rel=1e-12)
    assert values["gate_saturation"] == (1.0 if bias == -3.0 else 0.0)  # σ(−3) = 0.0474
    assert values["gradient_correlation"] == pytest.approx(1.0)
    assert list(by_layer(result, "gate_mean").values()) == pytest.approx(
        [values["gate_mean"]] * len(profiled_layers(depth, 1))
    )


def test_a_residual_with_a_branch_of_zero_is_the_identity():
    one = start("residual", "dense-pair", depth=20)
    work = TASK.prepare(one)
    with torch.no_grad():
        for parameter in work.network.parameters():
            parameter.zero_()
    result = run(one, work)
    values = scalars(result)
    assert (values["gradient_ratio"], values["activation_ratio"], values["jacobian_spread"]) == (1.0, 1.0, 0.0)
    assert len(set(by_layer(result, "activation").values())) == len(set(by_layer(result, "correlation").values())) == 1
    (scale,) = (one for one in result if one.metric == "depth_scale")
    assert (scale.value, scale.message) == (None, "the correlation shows no exponential decay")


@pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
def test_a_linear_orthogonal_stack_multiplies_by_its_gain(gain):
    one = start("plain", depth=10, gain=gain, family_options={"activation": "identity", "init": "orthogonal"})
    values = scalars(run(one))
    for metric in ("activation_ratio", "gradient_ratio", "jacobian_largest", "jacobian_smallest"):
        assert values[metric] == pytest.approx(gain**10, rel=1e-5)  # weights are drawn in float32
    assert values["jacobian_gain"] == pytest.approx(gain**20, rel=1e-5)


def test_plain_relu_keeps_its_signal_and_two_inputs_become_one():
    result = run(start("plain", depth=30, width=256, batch_size=32))
    values = scalars(result)
    assert 1 / 3 < values["activation_ratio"] < 3
    assert (by_layer(result, "correlation")[30] or 0) > 0.9
    assert 1 < values["depth_scale"] < 10
    assert values["jacobian_gain"] == pytest.approx(values["gradient_ratio"] ** 2, rel=0.5)


# ---------------------------------------------------------------------------------------------------------- verdicts


def test_sigmoid_layers_lose_their_gradient_and_not_their_signal():
    values = scalars(run(start(depth=50, family_options={"activation": "sigmoid"})))
    word, layer = verdict(values, "gradient")
    assert word == "vanishes"
    assert 40 <= layer < 50
    assert verdict(values, "signal") == ("in range", None)


def test_twice_the_weights_explode():
    values = scalars(run(start(depth=50, gain=2.0)))
    for way, low, high in (("signal", 5, 10), ("gradient", 40, 45)):
        word, layer = verdict(values, way)
        assert word == "explodes"
        assert low <= layer <= high


def test_what_is_not_finite_is_none_and_says_so():
    result = run(start("residual", depth=100, gain=1e4))
    values = scalars(result)
    assert verdict(values, "signal") == ("explodes", 1)
    (ratio,) = (one for one in result if one.metric == "activation_ratio")
    assert (ratio.value, ratio.status) == (None, Status.OK)
    assert "activation_ratio is" in str(ratio.message)
    assert all(one.value is None or math.isfinite(one.value) for one in result)
    assert values["jacobian_largest"] is values["jacobian_rank"] is None


# -------------------------------------------------------------------------------------------------------- the whole


@pytest.mark.parametrize(("block", "family"), combinations())
def test_every_combination(block, family):
    result = run(start(block, family, width=8, depth=3, batch_size=3, seq_len=5, dtype="float32"))
    values = scalars(result)
    assert len({(m.metric, m.axis, m.index) for m in result}) == len(result)
    assert {m.metric for m in result} <= {metric.name for metric in TASK.metrics}
    assert {m.status for m in result} == {Status.OK}
    assert set(by_layer(result, "gradient")) == {0, 1, 2, 3}
    assert set(by_layer(result, "weight_gradient")) == {1, 2, 3}
    gates = blocks.get(block).gates
    opens = gates > 0 or block == "gru-gate"
    assert ("gate_mean" in values) == ("gate_saturation" in values) == opens
    assert ("gate_sum" in values) == (gates > 1)
    assert values["jacobian_gain"] is not None


def test_the_same_twice_and_apart_by_seed():
    first, again, other = (scalars(run(start("highway", depth=5, seed=seed))) for seed in (0, 0, 1))
    assert first == again
    assert first["gradient_ratio"] != other["gradient_ratio"]


def test_weights_and_random_numbers_stay_as_they_were():
    one = start("highway", depth=3)
    work = TASK.prepare(one)
    before = [parameter.detach().clone() for parameter in work.network.parameters()]
    state = torch.random.get_rng_state()
    run(one, work)
    assert all(a.equal(b) for a, b in zip(before, work.network.parameters(), strict=True))
    assert state.equal(torch.random.get_rng_state())
    assert all(not part._forward_hooks and not part._forward_pre_hooks for part in work.network.modules())


def test_evaluation_mode_shows_a_batch_norm_as_training_sees_it():
    options = {"norm_kind": "batch"}
    work = TASK.prepare(start("pre-norm", "conv", width=4, depth=6, family_options=options))
    trained = work.last_stream(work.stream())
    take_batch_statistics(work.network, work.inputs)
    work.network.eval()
    torch.testing.assert_close(work.last_stream(work.stream()), trained, rtol=0.02, atol=0.02)  # n − 1 for n


@pytest.mark.gpu
def test_a_recurrent_stack_on_a_gpu():
    one = start("highway", "bilstm", width=8, depth=2, seq_len=5, batch_size=2)
    there = scalars(run(one.but(device="cuda")))
    for metric, value in scalars(run(one)).items():
        assert there[metric] == (None if value is None else pytest.approx(value, rel=1e-6)), metric


@pytest.mark.parametrize("width", [8, 32])  # of six steps: the whole Jacobian, and its gain alone
@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_padding_does_not_count(texts, family, width):
    """The same net, the same texts, padded to three lengths, the first of which leaves some texts without padding."""

    def values_at(length):
        one = start("highway", family, dataset=texts, width=width, depth=3, batch_size=5, seq_len=length, steps=2)
        return {place: math.nan if value is None else value for place, value in by_place(run(one)).items()}

    short = values_at(6)
    assert {
        ("activation", "layer", 3),
        ("correlation", "layer", 3),
        ("gate_mean", "", 0.0),
        ("update", "layer", 1),
        ("jacobian_gain", "", 0.0),
        ("gradient_correlation", "", 0.0),
    } <= set(short)
    assert (("jacobian_rank", "", 0.0) in short) == (width == 8)
    for length in (7, 12):
        assert values_at(length) == pytest.approx(short, rel=1e-6, nan_ok=True)


def test_one_input_has_no_neighbour():
    result = run(start(batch_size=1, depth=6))
    assert set(by_layer(result, "correlation").values()) == {None}
    assert "gradient_correlation" not in scalars(result)


def test_the_layers_that_are_stored():
    assert profiled_layers(3) == [0, 1, 2, 3]
    assert profiled_layers(50, 1) == [1, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    assert profiled_layers(1) == [0, 1]
    assert profiled_layers(1, 1) == [1]
    assert all(len(profiled_layers(depth)) <= 11 for depth in range(1, 300))


# -------------------------------------------------------------------------------------------------------- first steps


def on_digits(block="plain", **changes):
    training = {"dataset": "digits", "steps": 3, "rate": 0.01, "momentum": 0.0, "decay": 1.0}
    return start(block, batch_size=32, **{**training, **changes})


def test_the_lower_layers_of_a_deep_sigmoid_net_stand_still():
    result = run(on_digits(depth=20, family_options={"activation": "sigmoid"}))
    values, moved = scalars(result), by_layer(result, "update")
    assert values["still_first"] == 1
    assert values["still_layers"] == values["still_last"]
    assert 10 < values["still_layers"] < 20
    assert (moved[1] or 0) < 1e-6 * (moved[20] or 0)


def test_one_step_moves_a_layer_by_rate_times_gradient():
    """‖ΔW‖/‖W‖ of plain SGD, computed apart."""
    one = on_digits(depth=2, steps=1)
    work = TASK.prepare(one)
    weight = work.layers[1][0].transform.weight
    before = weight.detach().clone()
    result = by_layer(run(one, work), "update")
    assert result[2] == pytest.approx(float((weight.detach() - before).norm() / before.norm()), rel=1e-12)
    assert result[2] == pytest.approx(0.01 * float(weight.grad.norm() / before.norm()), rel=1e-9)


def test_first_steps_that_diverge():
    result = [one for one in run(on_digits("residual", depth=50, gain=2.0)) if one.metric in ("update", "still_layers")]
    assert {one.status for one in result} == {Status.DIVERGED}
    assert all("not finite at step" in str(one.message) for one in result)
