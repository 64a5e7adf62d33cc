"""The device of a step: the stream before a capture, and the memory that is returned."""

import weakref

import pytest
import torch

from highway_bench.measure import device
from highway_bench.measure.device import freed, release

CUDA = torch.device("cuda")


def test_an_error_that_is_kept_holds_no_tensors(monkeypatch):
    alive = []
    made = []

    def fail():
        held = torch.zeros(3)
        made.append(weakref.ref(held))
        raise ValueError("no such thing")

    monkeypatch.setattr(device, "release", lambda _: alive.append(made[0]() is not None))
    with pytest.raises(ValueError, match="no such thing") as kept, freed("cpu"):
        fail()
    assert kept.value.__traceback__ is not None
    assert alive == [False]


def test_memory_in_reference_cycles_is_returned(monkeypatch):
    calls = []
    monkeypatch.setattr(device.gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty"))
    release("cpu")
    assert calls == []
    release(CUDA)
    assert calls == ["collect", "empty"]
