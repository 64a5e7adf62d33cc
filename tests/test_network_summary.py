"""A described network holds what the built one does."""

import pytest

from highway_bench.network_summary import summarise
from tests.combinations import combinations


@pytest.mark.parametrize(("block", "family"), combinations())
def test_parts_add_up(block, family):
    """Outermost modules hold all parameters and FLOP; one more layer adds the closed form."""
    shown, deeper = (summarise(block, family, depth=depth, width=16) for depth in (2, 3))
    outer = [layer for layer in shown.layers if layer.level == 0]
    assert sum(layer.params * layer.repeats for layer in outer) == shown.params
    assert sum(layer.flops * layer.repeats for layer in outer) == shown.flops
    assert deeper.flops - shown.flops == shown.layer_flops
    assert abs(shown.mismatch) < 0.35
    assert (shown.equal is None) == (block == "plain")


def test_sublayers_repeat_together():
    shown = summarise("residual", "transformer", depth=5, width=16)
    assert [(layer.name, layer.repeats) for layer in shown.layers if layer.level == 0] == [
        ("joins.0", 5),
        ("joins.1", 5),
    ]


def test_whole_network():
    shown = summarise("highway", "bilstm", depth=3, dataset="adding", seq_len=20)
    assert shown.input[0] == 20
    assert [layer.name for layer in shown.layers if layer.level == 0] == ["stem", "body", "head"]
    assert next(layer.repeats for layer in shown.layers if layer.name == "body.joins.0") == 3


@pytest.mark.parametrize(("family", "dataset"), [("conv", "digits"), ("attention", "adding"), ("dense", "digits")])
def test_the_closed_form_has_the_positions_of_the_data_set(family, dataset):
    shown = summarise("highway", family, depth=2, width=16, dataset=dataset)
    layers = [layer for layer in shown.layers if layer.name.startswith("body.joins.") and layer.name.count(".") == 2]
    assert sum(layer.flops * layer.repeats for layer in layers) == 2 * shown.layer_flops
