"""A user's layer: what can be joined, and one line for each reason why another cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from highway_bench.errors import BadInput
from highway_bench.studies.advice.request import AdviceRequest
from highway_bench.tasks.predicted_costs import predicted_bytes

Ask = Callable[..., AdviceRequest]


@pytest.mark.parametrize(
    ("layer", "kind", "data"),
    [
        ("feed_forward", "vector", "mnist-5k"),
        ("normed_convolution", "image", "mnist-5k"),
        ("attention_and_mlp", "sequence", "digits"),
    ],
)
def test_layers_as_users_have_them(examples: str, ask: Ask, layer: str, kind: str, data: str) -> None:
    request = ask(f"{examples}:{layer}", data=None if data == "mnist-5k" else data, batch_size=None)
    assert request.family.kind == kind
    assert request.data.name == data
    assert request.connections[0] == ("pre-norm", "depth-aware")
    cell = request.run(request.connections[0], 2, 0.1, 0)
    assert predicted_bytes(cell) > 0  # it runs, with its norms and its data


@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("wider", "shape"),
        ("noisy", "random"),
        ("state", "state"),
        ("state_in_a_buffer", "state"),
        ("masked", "mask"),
        ("empty", "parameters"),
        ("shared", "same parameters"),
        ("absent", "absent"),
    ],
)
def test_layers_that_cannot_be_joined(layers: str, ask: Ask, layer: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        ask(f"{layers}:{layer}", width=64)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_a_layer_that_cannot_be_copied_can_be_joined(layers: str, ask: Ask) -> None:
    assert ask(f"{layers}:normed").family.name == f"{layers}:normed"


def test_a_weight_whose_estimate_each_step_improves_can_be_joined(layers: str, ask: Ask) -> None:
    """The state of a spectral norm changes in training alone."""
    assert ask(f"{layers}:spectral").family.name == f"{layers}:spectral"


def test_what_no_module_has(ask: Ask) -> None:
    """Another function is another request, and so is another loss."""
    from torch import nn
    from torch.nn import functional

    layers = [lambda width: nn.Linear(width, width), lambda width: nn.Linear(width, width, bias=False)]
    losses = [lambda y, t: functional.cross_entropy(y, t), lambda y, t: 2 * functional.cross_entropy(y, t)]
    asked = [ask(layer, loss=loss) for layer in layers for loss in losses]
    assert len({one.name for one in asked}) == 4


def test_starts_and_blocks_that_a_layer_can_carry(layers: str, ask: Ask) -> None:
    own = ask(f"{layers}:fine", block=())
    assert ("plain", "depth-aware") not in own.connections  # orthogonal weights are not a user's layer's
    assert {one.block for one in ask(block=()).connections} >= {"plain", "rezero", "mhc"}
    left_out = {"parallel", "hc-static", "value-residual"}  # two sublayers; a variant; attention's values
    assert not {one.block for one in own.connections} & left_out
    with pytest.raises(BadInput, match="value-residual"):
        ask(f"{layers}:fine", block=("value-residual",))
    assert ("hc-static", "published") in ask(block=("hc-static",)).connections
    first = ask(block=()).connections[:3]
    assert first == [("pre-norm", "depth-aware"), ("highway", "depth-aware"), ("highway-free", "depth-aware")]
