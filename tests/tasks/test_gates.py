"""Gates: what is seen of hand-set gates, the lesion's exactness, and how far layers read back."""

import math

import pytest
import torch

from highway_bench.analysis.gate_statistics import ExampleSparsity
from highway_bench.blocks import blocks
from highway_bench.network import build
from highway_bench.results.schema import OUTCOMES, Status
from highway_bench.tasks import tasks
from highway_bench.tasks._gated_layers import NetworkRecord, gate_biases, gates_of, layer_positions, lesions
from highway_bench.tasks._layer_measurements import row_measurement
from highway_bench.training.checkpoint import CheckpointFolder
from highway_bench.training.evaluation import evaluate
from tests.cells import by_layer, by_place, on_digits, run
from tests.combinations import CORE, IN_DENSE

TASK = tasks.get("gates")


def trained(block="highway", **changes):
    defaults = {"width": 16, "depth": 3, "optimiser": "adam", "rate": 0.01, "decay": 1.0}
    return on_digits(block, task="gates", **{**defaults, **changes})


def samples(result, metric):
    return {one.index: list(one.samples or ()) for one in result if one.metric == metric}


def set_gates(network, biases):
    """Give every unit of layer ``i`` a gate that does not depend on x."""
    for maps, bias in zip(gates_of(network).values(), biases, strict=True):
        (_, weight), (_, value) = (part.data.chunk(1 + maps.gates)[:2] for part in maps.product.parameters())
        weight.zero_()
        value.fill_(bias)


def test_cutting_out_a_layer_whose_gates_are_shut_changes_nothing():
    work = TASK.prepare(trained())
    network, split = work.training.network, work.data.train
    set_gates(network, [-1.0, -200.0, -1.0])  # σ(−200) is zero in single precision
    intact = evaluate(network, split, "class")
    result = lesions(network, split, "class")
    assert result["lesion_loss"][2] == intact.loss
    assert result["lesion_loss"][1] != intact.loss != result["lesion_loss"][3]
    assert evaluate(network, split, "class") == intact


@pytest.mark.parametrize("block", ["residual", "pre-norm"])
def test_cutting_out_is_a_branch_of_zero(block):
    work = TASK.prepare(trained(block))
    network, split = work.training.network, work.data.train
    cut = lesions(network, split, "class")["lesion_loss"]
    layers, index = layer_positions(network)[1]
    for parameter in layers[index].transform.parameters():
        parameter.data.zero_()
    assert evaluate(network, split, "class").loss == cut[2]


def test_measurements_of_gates_set_by_hand():
    work = TASK.prepare(trained())
    network, split = work.training.network, work.data.train
    set_gates(network, [math.log(0.04 / 0.96), math.log(0.06 / 0.94), 5.0])  # T = 0.04, 0.06 and 0.993
    assert gate_biases(network) == pytest.approx({1: -3.178, 2: -2.752, 3: 5.0}, abs=1e-3)
    values = NetworkRecord.of(network, split, "class").layer_values()
    assert values["gate_activity"] == pytest.approx({1: 0.04, 2: 0.06, 3: 0.9933}, abs=1e-4)
    assert values["gates_shut"] == {1: 1, 2: 0, 3: 0}
    assert values["gates_full"] == {1: 0, 2: 0, 3: 1}
    assert values["gates_open_one"] == values["gates_open_average"] == values["gates_open_some"] == {1: 0, 2: 0, 3: 1}
    assert values["gate_class_spread"] == pytest.approx(dict.fromkeys((1, 2, 3), 0.0), abs=1e-6)


def test_an_item_is_sparse_where_its_gates_choose():
    """One unit open for each item, another one for every item: sparse for one, even on average."""
    record = NetworkRecord(ExampleSparsity(4), None)
    record.add_gate(1, torch.eye(4))
    whole = record.network_values()
    assert (whole["sparsity_one"], whole["sparsity_average"]) == (pytest.approx(1), pytest.approx(0))


def test_the_streams_change_is_the_branch_where_the_input_is_carried_whole():
    work = TASK.prepare(trained("residual", depth=1))
    network, split = work.training.network, work.data.train
    layer = layer_positions(network)[0][0][0]
    with torch.no_grad():
        x = network.stem(split.inputs)
        branch = layer.transform(x)
    values = NetworkRecord.of(network, split, "class").layer_values()["stream_change"]
    assert values == pytest.approx({1: float(branch.norm() / x.norm())}, rel=1e-5)


def test_a_network_that_goes_on_from_a_checkpoint_measures_its_start(tmp_path):
    one = trained(steps=30)
    checkpoints = CheckpointFolder(tmp_path, {one: "key"})
    begun = TASK.prepare(one).training
    for _ in range(25):
        begun.step()
        begun.times.append(0.0)
    checkpoints.checkpoint([one]).save([begun])
    (outcome,) = TASK.measure([one], checkpoints)
    assert by_place(outcome.measurements) == by_place(run(one))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("block", IN_DENSE)
def test_every_block_ends_in_rows_that_the_store_can_distinguish(block):
    result = run(trained(block, width=8, steps=4))
    assert len({(one.metric, one.axis, one.index) for one in result}) == len(result)
    assert {one.metric for one in result} <= {metric.name for metric in TASK.metrics}
    assert all(one.value is None or math.isfinite(one.value) for one in result)
    assert all(one.status in OUTCOMES for one in result)
    of_parts = block in ("parallel", "x0-mix", "dense-average", "attn-residual", "attn-residual-block")
    assert len(by_layer(result, "stream_change")) == (0 if of_parts else 3)  # a state of several parts is no stream
    gated = [1, 2, 3] if blocks.get(block).gates or block == "gru-gate" else []
    assert list(by_layer(result, "gates_shut")) == list(by_layer(result, "gate_activity")) == gated
    if block in CORE:  # all but plain carry the stream, and have a lesion curve
        curve = [] if block == "plain" else [1, 2, 3]
        assert list(by_layer(result, "lesion_loss")) == list(by_layer(result, "lesion_error")) == curve


def test_it_trains_as_trainability_does():
    one = trained()
    expected, work = by_place(run(one.but(task="trainability"))), TASK.prepare(one)
    result = by_place(run(one, work))
    assert expected
    assert {key: result[key] for key in expected} == expected
    intact = evaluate(work.training.network, work.data.train, "class")
    assert result["intact_loss", "", 0.0] == intact.loss


def test_a_run_that_diverges_has_no_values_by_layer():
    result = run(trained("residual", depth=10, optimiser="sgd", rate=1e6))
    assert {one.status for one in result if one.metric == "final_loss"} == {Status.DIVERGED}
    assert not any(one.axis == "layer" for one in result)


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_padding_does_not_count(texts, family):
    """The same net, the same texts, padded to three lengths, the first of which leaves some texts without padding."""

    def values_at(length):
        one = trained(family=family, dataset=texts, width=8, depth=2, batch_size=4, seq_len=length, dtype="float64")
        work = TASK.prepare(one)
        record = NetworkRecord.of(work.training.network, work.data.train, "class")
        return record.network_values() | {
            f"{metric} {layer}": value
            for metric, values in record.layer_values().items()
            for layer, value in values.items()
        }

    short = values_at(6)
    assert {"sparsity_one", "gate_activity 1", "gate_class_spread 1", "stream_change 2"} <= set(short)
    for length in (7, 12):
        assert values_at(length) == pytest.approx(short, rel=1e-9)


def test_a_gate_that_ends_in_a_norm_has_the_norms_bias():
    options = {
        "block_options": {"gate_bias": -4.0},
        "family_options": {"gate": "pair", "branch_norm": True},
    }
    for block in ("highway", "highway-free"):
        network = build(block, "conv-pair", width=4, depth=2, dataset="digits", **options)
        assert gate_biases(network) == {1: -4.0, 2: -4.0}


def test_a_row_has_one_number_for_each_earlier_branch():
    result = run(trained("attn-residual", width=8, batch_size=20, rate=0.03))
    start = [value for row in samples(result, "mixing_start").values() for value in row]
    assert start == pytest.approx([1, *[1 / 2] * 2, *[1 / 3] * 3])
    end = samples(result, "mixing_end")
    assert [len(row) for row in end.values()] == [1, 2, 3]
    assert end[3] != pytest.approx([1 / 3] * 3, abs=1e-4)
    assert [sum(row) for row in samples(result, "mixing_share_end").values()] == pytest.approx([1, 1, 1], abs=1e-4)


def test_numbers_that_are_not_finite_are_null():
    assert row_measurement("mixing_end", [float("nan"), 2.0], 2).samples == [None, 2.0]
    assert row_measurement("mixing_end", [float("nan")], 1).value is None
