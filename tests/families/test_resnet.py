"""The family with batch norms: what it is made of, how it is tested, and what is refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import nn

from highway_bench.cell import Cell
from highway_bench.errors import BadInput
from highway_bench.families import make_family
from highway_bench.families.conv_pair import ConvPair
from highway_bench.network import build
from highway_bench.plan.plan import Plan
from highway_bench.studies.reproduce.flops import NORMED
from highway_bench.tasks import tasks
from highway_bench.training.evaluation import evaluate


def trained(**recipe: Any) -> Cell:
    return Cell(
        task="trainability",
        block="highway",
        family="resnet",
        depth=2,
        width=4,
        nominal_width=4,
        batch_size=32,
        dataset="digits",
        recipe={"rate": 0.05, "steps": 4, **recipe},
    )


def test_norms_of_a_block_are_batch_norms() -> None:
    layer = cast(Any, build("pre-norm", "resnet", width=4, depth=1)).joins[0]
    assert isinstance(layer.norm, nn.BatchNorm2d)


def test_it_is_conv_pair_with_options() -> None:
    options = {**NORMED, "gate": "pair"}
    assert {name: getattr(make_family("resnet"), name) for name in options} == options
    assert isinstance(make_family("resnet"), ConvPair)
    ours, theirs = (
        build("highway", name, width=4, depth=2, family_options=given, seed=1)
        for name, given in (("resnet", {}), ("conv-pair", options))
    )
    x = torch.randn(3, 4, 6, 6)
    assert torch.equal(ours(x), theirs(x))


def test_steps_take_the_statistics_of_their_batch_and_tests_the_running_ones() -> None:
    work = tasks.get("trainability").prepare(trained(evaluate="epoch", steps=56))  # an epoch of 44 batches, and more
    seen: list[bool] = []
    norm = next(module for module in work.training.network.modules() if isinstance(module, nn.BatchNorm2d))
    norm.register_forward_hook(lambda module, *_: seen.append(module.training))
    start = cast(torch.Tensor, norm.running_mean).clone()
    work.training.run()
    assert sum(seen) == 56  # one batch a step; the test after the epoch is in evaluation mode
    assert len(seen) > 56
    assert seen[-1]
    assert not torch.equal(cast(torch.Tensor, norm.running_mean), start)


def test_a_held_out_loss_does_not_depend_on_the_batches() -> None:
    cell = trained()
    work = tasks.get("trainability").prepare(cell)
    work.training.run()
    network, test = work.training.network, work.data.test
    running = [buffer.clone() for buffer in network.buffers()]
    small, large = (evaluate(network, test, "class", batch_size=size) for size in (7, len(test.inputs)))
    assert small.accuracy == large.accuracy
    assert small.loss == pytest.approx(large.loss, rel=1e-5)
    assert all(map(torch.equal, running, network.buffers()))
    (outcome,) = tasks.get("trainability").measure([cell])
    found = {one.metric: one.value for one in outcome.measurements}
    assert found["test_loss"] == pytest.approx(large.loss, rel=1e-5)
    assert found["test_accuracy"] == large.accuracy
    network.train()
    of_batches = network(test.inputs).detach()
    assert float(nn.functional.cross_entropy(of_batches, test.targets)) != pytest.approx(large.loss, rel=1e-3)


def test_a_population_is_refused_before_anything_is_measured(tmp_path: Any) -> None:
    with pytest.raises(BadInput, match="together"):
        Plan((trained(together=3),)).run(tmp_path / "store.sqlite")
    tasks.get("trainability").check(trained(together=1))
