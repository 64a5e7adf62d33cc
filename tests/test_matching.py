"""Equal budgets: the highway paper's widths and totals, and that the width found is the nearest there is."""

from functools import partial

import pytest
from torch import nn

from highway_bench.blocks import blocks
from highway_bench.errors import BadInput
from highway_bench.families import family, make_family
from highway_bench.families.parts import count_parameters
from highway_bench.matching import baseline, layer_cost, matched_width, mismatch
from highway_bench.network import build
from tests.combinations import combinations

DENSE = make_family("dense")
HIGHWAY, PLAIN = blocks.get("highway"), blocks.get("plain")


def test_the_papers_layers():
    assert [matched_width(block, DENSE, 71, "params") for block in (HIGHWAY, PLAIN)] == [50, 71]
    assert mismatch(HIGHWAY, DENSE, 50, 71, "params") == pytest.approx(5_100 / 5_112 - 1)
    assert mismatch(HIGHWAY, DENSE, 50, 71, "width") == 0.0


@pytest.mark.parametrize(
    ("layers", "highway", "plain"),
    [
        (10, 85_660, 102_463),
        (20, 136_660, 153_583),
        (50, 289_660, 306_943),
        (100, 544_660, 562_543),
    ],
)
def test_the_papers_totals(layers, highway, plain):
    """Their first layer is our stem, so that their 10 layers are our depth 9."""
    for block, width, total in (("highway", 50, highway), ("plain", 71, plain)):
        network = build(block, "dense", width=width, depth=layers - 1, dataset="mnist-5k")
        assert count_parameters(network) == total


@pytest.mark.parametrize("match", ["params", "flops"])
@pytest.mark.parametrize(("block", "family"), combinations())
def test_no_other_width_is_nearer(block, family, match):
    made, spec = make_family(family), blocks.get(block)
    nominal = 48
    found = matched_width(spec, made, nominal, match)
    budget, cost = layer_cost(baseline(), made, match)(nominal), layer_cost(spec, made, match)
    step = made.width_step
    assert found % step == 0
    nearest = min(abs(cost(width) - budget) for width in range(step, 2 * nominal, step))
    assert abs(cost(found) - budget) == nearest
    assert mismatch(spec, made, found, nominal, match) == pytest.approx(cost(found) / budget - 1)


def test_equal_flops_need_not_be_equal_parameters():
    """A norm costs parameters, but no matrix product."""
    assert matched_width(blocks.get("pre-norm"), DENSE, 8, "flops") == 8
    assert matched_width(blocks.get("pre-norm"), DENSE, 8, "params") == 7


def test_a_longer_sequence_shifts_the_balance():
    """Attention's scores cost the same with or without gates, so gates weigh less where sequences are long."""
    made = make_family("attention")
    short, long = (matched_width(HIGHWAY, made, 64, "flops", positions=steps) for steps in (8, 256))
    assert short < long < 64


@pytest.mark.parametrize(("nominal", "snap", "width"), [(71, 1, 50), (1024, 8, 720), (128, 8, 92), (71, 64, 50)])
def test_widths_snap_as_far_as_budgets_stay_within_five_percent(nominal, snap, width):
    """723.6 of 1,024 is 720 in eights; 90.5 of 128 is 92 in fours, for 88 and 96 are more than 5 % off."""
    assert matched_width(HIGHWAY, DENSE, nominal, "params", snap=snap) == width
    assert abs(mismatch(HIGHWAY, DENSE, width, nominal, "params")) <= 0.05


def test_snapping_respects_what_the_family_needs():
    made = make_family("attention", heads=3)
    assert matched_width(HIGHWAY, made, 96, "params", snap=8) == 84  # a multiple of 3 heads × 4


def test_equal_width_is_the_nominal_width_itself():
    assert all(matched_width(blocks.get(name), DENSE, 71, "width", snap=8) == 71 for name in blocks.names())


def test_what_cannot_be():
    with pytest.raises(BadInput, match="2 divides"):
        matched_width(HIGHWAY, make_family("bilstm"), 71, "params")
    with pytest.raises(BadInput, match="at least 1"):
        matched_width(PLAIN, DENSE, 0, "params")
    with pytest.raises(BadInput, match="params or flops"):
        layer_cost(PLAIN, DENSE, "width")


@pytest.mark.parametrize("match", ["params", "flops"])
def test_nothing_to_match(match):
    still = family(lambda width: nn.Tanh(), kind="vector")
    for call in (matched_width, partial(mismatch, width=8)):
        with pytest.raises(BadInput, match=r"choose match=width$"):
            call(HIGHWAY, still, nominal=8, match=match)
    assert matched_width(HIGHWAY, still, 8, "width") == 8
