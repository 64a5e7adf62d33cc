"""Gates: what is seen of hand-set gates, and the lesion's exactness."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from highway_bench.analysis.gate_statistics import ExampleSparsity
from highway_bench.blocks import blocks
from highway_bench.cell import Cell
from highway_bench.families.parts import FusedMaps
from highway_bench.network import build
from highway_bench.results.schema import OUTCOMES, Status
from highway_bench.tasks import Measurement, tasks
from highway_bench.tasks._gated_layers import NetworkRecord, gate_biases, gates_of, layer_positions, lesions
from highway_bench.training.checkpoint import CheckpointFolder
from highway_bench.training.evaluation import evaluate
from tests.combinations import CORE, IN_DENSE

MakeCell = Callable[..., Cell]
TASK = tasks.get("gates")


@pytest.fixture
def digits(cell: MakeCell) -> Callable[..., Cell]:
    def make(block: str = "highway", **changes: Any) -> Cell:
        defaults: dict[str, Any] = {
            "width": 16,
            "depth": 3,
            "batch_size": 50,
            "dataset": "digits",
            "steps": 20,
            "optimiser": "adam",
            "rate": 0.01,
            "decay": 1.0,
            "phase": None,
        }
        return cell("gates", block, **{**defaults, **changes})

    return make


def run(one: Cell) -> list[Measurement]:
    work = TASK.prepare(one)
    return list(TASK.measurements(work, one))


def by_layer(result: list[Measurement], metric: str) -> dict[float, float | None]:
    return {one.index: one.value for one in result if one.metric == metric and one.axis == "layer"}


def set_gates(network: nn.Module, biases: list[float]) -> None:
    """Give every unit of layer ``i`` a gate that does not depend on x."""
    for maps, bias in zip(gates_of(network).values(), biases, strict=True):
        assert isinstance(maps, FusedMaps)
        (_, weight), (_, value) = (part.data.chunk(1 + maps.gates)[:2] for part in maps.product.parameters())
        weight.zero_()
        value.fill_(bias)


def test_cutting_out_a_layer_whose_gates_are_shut_changes_nothing(digits: MakeCell) -> None:
    work = TASK.prepare(digits())
    network, split = work.training.network, work.data.train
    set_gates(network, [-1.0, -200.0, -1.0])  # σ(−200) is zero in single precision
    intact = evaluate(network, split, "class")
    result = lesions(network, split, "class")
    assert result["lesion_loss"][2] == intact.loss
    assert result["lesion_loss"][1] != intact.loss != result["lesion_loss"][3]
    assert evaluate(network, split, "class") == intact


@pytest.mark.parametrize("block", ["residual", "pre-norm"])
def test_cutting_out_is_a_branch_of_zero(digits: MakeCell, block: str) -> None:
    work = TASK.prepare(digits(block))
    network, split = work.training.network, work.data.train
    cut = lesions(network, split, "class")["lesion_loss"]
    layers, index = layer_positions(network)[1]
    for parameter in layers[index].transform.parameters():  # type: ignore[union-attr]
        parameter.data.zero_()
    assert evaluate(network, split, "class").loss == cut[2]


def test_measurements_of_gates_set_by_hand(digits: MakeCell) -> None:
    work = TASK.prepare(digits())
    network, split = work.training.network, work.data.train
    set_gates(network, [math.log(0.04 / 0.96), math.log(0.06 / 0.94), 5.0])  # T = 0.04, 0.06 and 0.993
    assert gate_biases(network) == pytest.approx({1: -3.178, 2: -2.752, 3: 5.0}, abs=1e-3)
    values = NetworkRecord.of(network, split, "class").layer_values()
    assert values["gate_activity"] == pytest.approx({1: 0.04, 2: 0.06, 3: 0.9933}, abs=1e-4)
    assert values["gates_shut"] == {1: 1, 2: 0, 3: 0}
    assert values["gates_full"] == {1: 0, 2: 0, 3: 1}
    assert values["gates_open_one"] == values["gates_open_average"] == values["gates_open_some"] == {1: 0, 2: 0, 3: 1}
    assert values["gate_class_spread"] == pytest.approx(dict.fromkeys((1, 2, 3), 0.0), abs=1e-6)


def test_an_item_is_sparse_where_its_gates_choose() -> None:
    """One unit open for each item, another one for every item: sparse for one, even on average."""
    record = NetworkRecord(ExampleSparsity(4), None)
    record.add_gate(1, torch.eye(4))
    whole = record.network_values()
    assert (whole["sparsity_one"], whole["sparsity_average"]) == (pytest.approx(1), pytest.approx(0))


def test_the_streams_change_is_the_branch_where_the_input_is_carried_whole(digits: MakeCell) -> None:
    work = TASK.prepare(digits("residual", depth=1))
    network, split = work.training.network, work.data.train
    layer = layer_positions(network)[0][0][0]
    with torch.no_grad():
        x = network.stem(split.inputs)
        branch = layer.transform(x)  # type: ignore[operator]
    values = NetworkRecord.of(network, split, "class").layer_values()["stream_change"]
    assert values == pytest.approx({1: float(branch.norm() / x.norm())}, rel=1e-5)


def test_networks_that_train_together_show_what_they_would_alone(digits: MakeCell) -> None:
    cells = [digits(dtype="float64", seed=seed, together=2) for seed in range(2)]
    for outcome in TASK.measure(cells):
        alone = {(one.metric, one.axis, one.index): one.value for one in run(outcome.cell)}
        result = {(one.metric, one.axis, one.index): one.value for one in outcome.measurements}
        assert result.keys() == alone.keys()
        assert result["together", "", 0.0] == 2
        for key, value in result.items():
            if "seconds" not in key[0] and key[0] != "together":
                expected = alone[key]
                assert value == (None if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-9))


def test_a_network_that_goes_on_from_a_checkpoint_measures_its_start(digits: MakeCell, tmp_path: Path) -> None:
    one = digits(steps=30)
    checkpoints = CheckpointFolder(tmp_path, {one: "key"})
    begun = TASK.prepare(one).training
    for _ in range(25):
        begun.step()
        begun.times.append(0.0)
    checkpoints.checkpoint([one]).save([begun])
    (outcome,) = TASK.measure([one], checkpoints)
    again = {(result.metric, result.axis, result.index): result.value for result in outcome.measurements}
    whole = {(result.metric, result.axis, result.index): result.value for result in run(one)}
    assert again.keys() == whole.keys()
    assert all(again[key] == value for key, value in whole.items() if "seconds" not in key[0])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("block", IN_DENSE)
def test_every_block_ends_in_rows_that_the_store_can_distinguish(digits: MakeCell, block: str) -> None:
    result = run(digits(block, steps=4))
    keys = [(one.metric, one.axis, one.index) for one in result]
    assert len(keys) == len(set(keys))
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


def test_it_trains_as_trainability_does(digits: MakeCell) -> None:
    one = digits()
    training = tasks.get("trainability")
    trained = training.measurements(training.prepare(one.but(task="trainability")), one.but(task="trainability"))
    expected = {(m.metric, m.axis, m.index): m.value for m in trained if "seconds" not in m.metric}
    result = {(m.metric, m.axis, m.index): m.value for m in run(one)}
    assert expected
    assert {key: result[key] for key in expected} == expected
    work = TASK.prepare(one)
    list(TASK.measurements(work, one))
    intact = evaluate(work.training.network, work.data.train, "class")
    assert result["intact_loss", "", 0.0] == intact.loss


def test_a_run_that_diverges_has_no_values_by_layer(digits: MakeCell) -> None:
    result = run(digits("residual", depth=10, optimiser="sgd", rate=1e6))
    assert {one.status for one in result if one.metric == "final_loss"} == {Status.DIVERGED}
    assert not any(one.axis == "layer" for one in result)


@pytest.mark.parametrize("family", ["bilstm", "attention", "transformer"])
def test_padding_does_not_count(digits: MakeCell, texts: str, family: str) -> None:
    """The same net, the same texts, padded to three lengths, the first of which leaves some texts without padding."""

    def values_at(length: int) -> dict[str, Any]:
        one = digits(family=family, dataset=texts, width=8, depth=2, batch_size=4, seq_len=length, dtype="float64")
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


def test_a_gate_that_ends_in_a_norm_has_the_norms_bias() -> None:
    options = {"gate": "pair", "branch_norm": True}
    for block, options_ in (("highway", {"gate_bias": -4.0}), ("highway-free", {"gate_bias": -4.0})):
        network = build(
            block, "conv-pair", width=4, depth=2, dataset="digits", block_options=options_, family_options=options
        )
        assert gate_biases(network) == {1: -4.0, 2: -4.0}
