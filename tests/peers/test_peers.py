"""Every peer computes what our network computes, and one that does not is never timed."""

import pytest
import torch
from torch import nn

from highway_bench.errors import BadInput, UnknownName
from highway_bench.measure.clock import ALL_CAPPED, ALL_DISTURBED, Turns
from highway_bench.peers.base import peers, register_peer
from highway_bench.peers.comparison import SIZES
from highway_bench.peers.pair import TOLERANCE, PeerDiffers, PeerPair
from highway_bench.peers.timing import OURS, PeerTimes
from highway_bench.tasks import tasks

OF_TORCH = ["fused-map", "sequential", "stacked-lstm", "transformer-encoder", "two-linear-maps"]

# x-transformers scripts functions when it is imported
pytestmark = pytest.mark.filterwarnings(r"ignore:.torch\.jit\.script. is deprecated:DeprecationWarning")


def pair_of(cells, name, **words):
    if peers.get(name).version is None:
        pytest.skip(f"{peers.get(name).package} is not installed")
    (cell,) = cells(name, **words)
    return PeerPair.of(cell)


def by_name(outcome):
    assert outcome.error is None, outcome.error
    return {one.metric: one for one in outcome.measurements}


def test_the_registry_has_every_peer():
    assert peers.names() == sorted([*OF_TORCH, "keras", "x-transformers"])
    assert {name for name in peers if peers.get(name).package == "torch"} == set(OF_TORCH)
    assert all(peers.get(name).family in sizes for name in peers for sizes in SIZES.values())


@pytest.mark.parametrize("name", peers.names())
@pytest.mark.parametrize("phase", ["forward-backward", "forward"])
def test_outputs_and_gradients_are_ours(name, phase, cells):
    pair = pair_of(cells, name, phase=(phase,))
    assert pair.difference <= TOLERANCE
    pair.our_step()
    pair.peer_step()
    with torch.no_grad():
        torch.testing.assert_close(pair.peer_step.network(pair.our_step.x), pair.network(pair.our_step.x))


@pytest.mark.parametrize("name", ["two-linear-maps", "fused-map", "keras"])
def test_ours_saves_less_than_other_highway_layers(name, cells):
    """A layer saves x, H and T, theirs also 1 − T. In the first layer x is the input, which needs no gradient."""
    pair = pair_of(cells, name)
    cell = pair.our_step.cell
    numbers = 4 * cell.batch_size * cell.width
    assert pair.our_step.saved == (3 * cell.depth - 1) * numbers
    assert pair.peer_step.saved == (4 * cell.depth - 2) * numbers


@pytest.fixture
def wrong():
    """A peer of another non-linearity."""

    @register_peer("wrong", block="plain", family="dense", summary="tanh", source="this test")
    def wrong(ours):
        return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in ours.joins))

    yield
    peers.unregister("wrong")


def test_a_peer_that_differs_is_an_error_and_the_others_are_timed(cells, wrong, monkeypatch):
    group = (*cells("wrong"), *cells("sequential"))
    task = tasks.get("peers")
    monkeypatch.setattr(type(task), "recipe_words", {**task.recipe_words, "peer": task.recipe_words["version"]})
    assert task.group(group[0]) == task.group(group[1])
    failed, timed = task.measure(group)
    assert isinstance(failed.error, PeerDiffers)
    found = by_name(timed)
    assert timed.cell == group[1]
    assert len(found["step_time"].samples) == len(found["step_time"].paired["peer"]) == 2
    assert found["peer_ratio"].low is None  # one process has no interval
    assert found["saved_activations"].value == found["peer_saved"].value == 4 * 8 * 3 * 2
    assert found["difference"].value <= TOLERANCE


def test_a_forward_step_saves_nothing(cells):
    group = cells("fused-map", phase=("forward",))
    (outcome,) = tasks.get("peers").measure(group)
    assert by_name(outcome).keys() == {"peer_ratio", "step_time", "peer_time", "difference"}


def test_modes_that_a_peer_lacks_are_left_out(cells):
    modes = {(cell.recipe["peer"], cell.mode) for cell in cells("stacked-lstm", "sequential", mode=())}
    assert modes == {("stacked-lstm", "eager"), ("sequential", "eager"), ("sequential", "compile")}


@pytest.mark.parametrize(
    ("name", "words", "error"),
    [
        ("sequentiel", {}, UnknownName),
        ("x-transformers", {"width": (6,)}, BadInput),
        ("sequential", {"phase": ("train-step",)}, UnknownName),
        ("stacked-lstm", {"mode": ("compile",)}, BadInput),
    ],
)
def test_what_is_refused(name, words, error, cells):
    with pytest.raises(error):
        cells(name, **words)


@pytest.mark.slow
def test_a_compiled_pair(cells):
    pair = pair_of(cells, "two-linear-maps", mode=("compile",))
    for step, parameters in ((pair.our_step, 4), (pair.peer_step, 8)):
        step()
        assert len(torch.autograd.grad(step.call(step.x), step.parameters, step.cotangent)) == parameters


def test_a_ratio_covers_processes(cells):
    (cell,) = cells("sequential")

    def turns(ours, theirs, *, disturbed=False, capped=0):
        seconds = {OURS: [ours] * 3, cell: [theirs] * 3}
        return Turns(seconds, seconds, 1, 0, False, disturbed, capped=capped)

    times = PeerTimes((cell,), [turns(0.9, 1.0), turns(1.8, 2.0)])
    assert times.process == [0, 0, 0, 1, 1, 1]
    ratio = times.ratio(cell)
    assert (ratio.value, ratio.n) == (pytest.approx(0.9), 2)
    assert times.is_precise(0.01)
    assert times.undecided is times.gpu_ratio(cell) is None
    assert PeerTimes((cell,), [turns(1, 1, disturbed=True)]).undecided == ALL_DISTURBED
    assert PeerTimes((cell,), [turns(1, 1, disturbed=True, capped=2)]).undecided == ALL_CAPPED


def test_the_step_of_a_gradient_is_that_of_every_parameter(cells, monkeypatch):
    step = pair_of(cells, "sequential").peer_step
    calls = []
    real = torch.autograd.grad
    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd, "grad", lambda *args: calls.append(real(*args)))
        step()
    assert [part.shape for part in calls[0]] == [parameter.shape for parameter in step.parameters]


@pytest.mark.parametrize("arm", ["our_step", "peer_step"])
def test_a_copy_has_the_weights_of_recurrent_layers_in_one_buffer(cells, arm, monkeypatch):
    """Otherwise cuDNN copies them at every pass, which would be timed."""
    step = getattr(pair_of(cells, "stacked-lstm"), arm)
    flat = []
    monkeypatch.setattr(nn.RNNBase, "flatten_parameters", lambda self: flat.append(self))
    assert flat == [module for module in step.of_copy().network.modules() if isinstance(module, nn.RNNBase)] != []
