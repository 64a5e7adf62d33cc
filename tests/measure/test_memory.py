"""Memory against sums done by hand for linear–relu–linear, and the meters against each other."""

import pytest
import torch
from torch import nn

from highway_bench.errors import BadInput
from highway_bench.measure.memory import measure_memory, saved_activations, storage_bytes

BATCH, INPUT, HIDDEN, OUTPUT = 32, 16, 64, 4
FLOAT = 4
W1, B1, W2, B2 = (FLOAT * n for n in (INPUT * HIDDEN, HIDDEN, HIDDEN * OUTPUT, OUTPUT))
X, Z, Y, SCALAR = (FLOAT * n for n in (BATCH * INPUT, BATCH * HIDDEN, BATCH * OUTPUT, 1))
PARAMETERS = W1 + B1 + W2 + B2


def make_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(INPUT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUTPUT))


def report_of(net, *, adam=False, **options):
    x = torch.randn(BATCH, INPUT)
    optimiser = torch.optim.Adam(net.parameters(), foreach=False) if adam else None
    return measure_memory(net, lambda: net(x).sum(), optimiser=optimiser, inputs=[x], **options)


def test_every_part_by_hand():
    got = report_of(make_net(), adam=True)
    assert got.parameter_bytes == got.gradients == PARAMETERS
    assert got.buffers == 0
    assert got.inputs == X
    assert got.optimiser_state == 2 * PARAMETERS + 4 * SCALAR  # two moments and a step count for each of 4 tensors
    assert got.saved_activations == Z  # relu's output, needed by relu and by the second product: once; x is an input
    assert got.meter == "tracker"


def test_the_peak_by_hand():
    # The most is alive in relu's backward: saved relu output, the gradient that came in and the one going out (the
    # output's gradient is a broadcast scalar), the second layer's gradients, the loss and its gradient.
    state = 2 * PARAMETERS + 4 * SCALAR
    assert report_of(make_net()).peak == PARAMETERS + X + 3 * Z + W2 + B2 + 2 * SCALAR
    assert report_of(make_net(), adam=True).peak == PARAMETERS + X + state + 3 * Z + W2 + B2 + 2 * SCALAR


def test_a_forward_pass_alone_keeps_nothing():
    got = report_of(make_net(), backward=False)
    assert (got.gradients, got.optimiser_state, got.saved_activations) == (0, 0, 0)
    assert got.peak == PARAMETERS + X + 2 * Z  # relu's input and output together


@pytest.mark.parametrize("adam", [False, True])
def test_the_profiler_agrees_with_the_tracker_on_plain_kernels(adam):
    net = make_net()
    tracked, profiled = report_of(net, adam=adam), report_of(net, adam=adam, meter="profiler")
    assert profiled.peak == pytest.approx(tracked.peak, rel=0.02)


def test_a_frozen_parameter_has_no_gradient():
    net = make_net()
    net[0].requires_grad_(False)
    got = report_of(net)
    assert (got.parameter_bytes, got.gradients) == (PARAMETERS, W2 + B2)
    assert got.peak < report_of(make_net()).peak


def test_buffers_are_counted_apart():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    x = torch.randn(3, 4)
    got = measure_memory(net, lambda: net(x).sum(), inputs=[x])
    assert got.buffers == 2 * 4 * FLOAT + 8  # running mean and variance, and an int64 count
    assert got.saved_activations == 3 * 4 * FLOAT + 2 * 4 * FLOAT  # the norm's input, and the batch's mean and 1/std


def test_a_highway_layer_saves_h_and_t_and_its_state():
    maps = [nn.Linear(8, 16) for _ in range(3)]
    net, x = nn.ModuleList(maps), torch.randn(5, 8)

    def forward(leak):
        y = x
        for layer in maps:
            h, t = layer(y).chunk(2, dim=-1)
            y = torch.lerp(y, torch.tanh(h), torch.sigmoid(t))
            leak.append(y)
        return y.sum()

    one = 5 * 8 * FLOAT
    # tanh(h) and sigmoid(t) in each layer, and the state between layers (the first is the input, the last unsaved)
    assert saved_activations(lambda: forward([]), exclude=[net, x]) == 3 * 2 * one + 2 * one


def test_a_saved_view_keeps_its_whole_storage_and_a_storage_counts_once():
    weight = torch.ones(10, requires_grad=True)
    assert saved_activations(lambda: weight * torch.zeros(100)[:10]) == 100 * FLOAT
    assert saved_activations(lambda: weight * weight * torch.zeros(100)[:10]) == 100 * FLOAT + 10 * FLOAT
    assert saved_activations(lambda: weight * weight * torch.zeros(100)[:10], exclude=[weight]) == 100 * FLOAT
    base = torch.zeros(100)
    assert storage_bytes([base[:10], base[50:], base.view(10, 10)]) == 100 * FLOAT


def test_what_cannot_be_measured_is_bad_input():
    net, x = make_net(), torch.randn(BATCH, INPUT)
    with pytest.raises(BadInput, match="scalar"):
        measure_memory(net, lambda: net(x))
    with pytest.raises(BadInput, match="cpu"):
        report_of(net, meter="allocator")
    with pytest.raises(BadInput, match="compiled"):
        report_of(torch.compile(net, backend="eager"), meter="tracker")
    with pytest.raises(BadInput, match="backward"):
        report_of(net, adam=True, backward=False)


def test_compiled_code_is_measured_by_the_profiler_and_really_runs():
    ran = 0

    def backend(graph, inputs):
        def call(*args):
            nonlocal ran
            ran += 1
            return graph(*args)

        return call

    torch._dynamo.reset()
    net = torch.compile(make_net(), backend=backend)
    got = report_of(net)
    assert (got.meter, ran) == ("profiler", 3)
    assert got == report_of(make_net(), meter="profiler")


@pytest.mark.gpu
def test_cuda_bytes_are_near_the_tracked_ones():
    net, wide = make_net().cuda(), 4096
    x = torch.randn(wide, INPUT, device="cuda")
    got = measure_memory(net, lambda: net(x).sum(), inputs=[x])
    z = FLOAT * wide * HIDDEN
    assert got.meter == "allocator"
    assert got.saved_activations == z
    assert got.peak == pytest.approx(PARAMETERS + got.inputs + 3 * z, rel=0.1)
