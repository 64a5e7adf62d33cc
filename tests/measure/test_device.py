"""The device of a step: the stream before a capture, and the memory that is returned."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from highway_bench.measure import device
from highway_bench.measure.device import freed, on_side_stream, release

CUDA = torch.device("cuda")


class FakeStream:
    """A stream that notes what waits for it."""

    made = 0

    def __init__(self, _: object = None) -> None:
        type(self).made += 1
        self.log: list[FakeStream] = []

    def wait_stream(self, other: FakeStream) -> None:
        self.log.append(other)


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStream]:
    """Fakes of torch's streams; gives the main one."""
    main, current = FakeStream(), [None]
    monkeypatch.setattr(FakeStream, "made", 0)
    monkeypatch.setattr(torch.cuda, "Stream", FakeStream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: main)

    @contextlib.contextmanager
    def on(stream: Any) -> Iterator[None]:
        current[0] = stream
        yield
        current[0] = None

    monkeypatch.setattr(torch.cuda, "stream", on)
    device._side_stream.cache_clear()
    yield main
    device._side_stream.cache_clear()


def test_all_steps_before_captures_share_a_stream(streams: FakeStream) -> None:
    """Each stream that cuBLAS ran on costs 32 MiB."""
    assert [on_side_stream(partial(int, number), CUDA) for number in range(6)] == list(range(6))
    assert FakeStream.made == 1
    side = device._side_stream(CUDA)
    assert side.log == [streams] * 6  # type: ignore[attr-defined]
    assert streams.log == [side] * 6


def test_an_error_that_is_kept_holds_no_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[bool] = []
    made: list[weakref.ref[Tensor]] = []

    def fail() -> None:
        held = torch.zeros(3)
        made.append(weakref.ref(held))
        raise ValueError("no such thing")

    monkeypatch.setattr(device, "release", lambda _: alive.append(made[0]() is not None))
    with pytest.raises(ValueError, match="no such thing") as kept, freed("cpu"):
        fail()
    assert kept.value.__traceback__ is not None
    assert alive == [False]


def test_memory_in_reference_cycles_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(device.gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty"))
    release("cpu")
    assert calls == []
    release(CUDA)
    assert calls == ["collect", "empty"]
