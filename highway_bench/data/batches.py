"""``batches``: items of the user's own, from a copy that all workers read. ``save`` writes the copy."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from highway_bench.data._files import cache_folder
from highway_bench.data.base import (
    IGNORED,
    Data,
    DataSet,
    InputKind,
    Split,
    TargetKind,
    hash_of_items,
    register_dataset,
)
from highway_bench.errors import BadInput

INPUTS: dict[tuple[bool, int], InputKind] = {  # by floating point and number of axes
    (True, 3): "series",
    (True, 4): "image",
    (False, 2): "tokens",
}


@register_dataset("batches", summary="items of your own: --data module:NAME", source="the user", version="2")
@dataclass(frozen=True)
class Batches(DataSet):
    """The items of a copy that ``save`` wrote. ``items`` is a hash of them, by which workers find the copy.

    Inputs x: float (n, steps, features) or (n, channels, height, width); vectors are images (n, 1, 1, features). Or
    whole numbers (n, steps), which are tokens. Targets y: ``class`` int64 (n,); ``token`` int64 (n, steps), where −100
    does not count in both; ``scalar`` float (n,) or (n, numbers); ``label`` float (n, labels), each 0 or 1.
    """

    items: str

    @property
    def input_kind(self) -> InputKind:
        inputs = self.load().train.inputs
        return INPUTS[inputs.is_floating_point(), inputs.ndim]

    @property
    def target_kind(self) -> TargetKind:
        return _load(copy_of(self.items))[1]

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.load().train.inputs.shape[1:])

    @property
    def outputs(self) -> int:
        targets = self._both("targets")
        if targets.is_floating_point():
            return math.prod(targets.shape[1:])
        return int(targets.max()) + 1

    @property
    def vocabulary(self) -> int | None:
        return int(self._both("inputs").max()) + 1 if self.input_kind == "tokens" else None

    @property
    def causal(self) -> bool:  # type: ignore[override]  # of these items, not of the class
        """Whether every step's target is the next step's input."""
        inputs, targets = self.load().train
        if self.input_kind != "tokens" or targets.shape != inputs.shape or inputs.shape[1] < 2:
            return False
        return bool((targets[:, :-1] == inputs[:, 1:]).float().mean() > 0.9)

    @property
    def chance_loss(self) -> float:
        return constant_loss(self.load().train.targets, self.target_kind)

    @property
    def chance_accuracy(self) -> float | None:
        if self.target_kind == "scalar":
            return None
        train, test = (split.targets for split in self.load())
        if self.target_kind == "label":
            return float((test == train.mean(0).round()).float().mean())
        train, test = train[train != IGNORED], test[test != IGNORED]
        return float((test == train.mode().values).float().mean())

    def missing(self) -> str | None:
        return None if copy_of(self.items).is_file() else f"{copy_of(self.items)} is not there: name the data again"

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the copy is missing."""
        return _load(copy_of(self.items))[0]

    def _both(self, part: str) -> Tensor:
        return torch.cat([getattr(split, part) for split in self.load()])


@cache
def _load(path: Path) -> tuple[Data, TargetKind]:
    try:
        saved = torch.load(path, weights_only=True)
    except (OSError, EOFError, RuntimeError, UnpicklingError) as error:
        raise BadInput(f"the copy of the data cannot be read: {error}") from error
    return Data(Split(*saved["train"]), Split(*saved["test"])), saved["target_kind"]


def constant_loss(targets: Tensor, kind: TargetKind) -> float:
    """The loss of the best constant prediction of ``targets``: their entropy in nat, or their variance."""
    if kind == "scalar":
        return float((targets - targets.mean(0)).square().mean())
    if kind == "label":
        rates = targets.mean(0).expand(targets.shape)
        return float(functional.binary_cross_entropy(rates, targets))
    counts = torch.bincount(targets[targets != IGNORED]).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


def copy_of(items: str) -> Path:
    """The file with the items of this hash."""
    return cache_folder() / "items" / f"{Path(items).name}.pt"


def save(data: Data, kind: TargetKind) -> str:
    """Write a copy of ``data`` unless it is there, and return the hash of its items."""
    items = hash_of_items(data, kind)
    if not copy_of(items).is_file():
        saved = {"train": tuple(data.train), "test": tuple(data.test), "target_kind": kind}
        write_copy(items, lambda part: torch.save(saved, part))
    return items


def write_copy(items: str, write: Callable[[Path], Any]) -> None:
    """Let ``write`` make the file of a copy. An interruption leaves no half of it under the name that is read."""
    path = copy_of(items)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch raises the latter where its archive cannot be written
        raise BadInput(f"the data cannot be copied to {path}: {error}") from error
