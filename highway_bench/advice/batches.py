"""``batches``: a data set of the user's own, from a function that yields batches.

The batches are read once, in order, and saved: all workers train on the same items, and a later run on those too, even
where the function draws them at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from highway_bench.data.base import IGNORED, Data, DataSet, InputKind, Split, TargetKind, register_dataset
from highway_bench.errors import USER_ERRORS, BadInput
from highway_bench.families.seeding import seeded

MOST_ITEMS = 20_000
MOST_BATCHES = 2_000
TEST_SHARE = 10  # the last tenth of the items is held out

TARGETS = ("y", "target", "targets", "label", "labels")  # in batches that are dictionaries

INPUTS: dict[tuple[bool, int], InputKind] = {  # by floating point and number of axes
    (True, 2): "image",  # (n, features), an image of one row
    (True, 3): "series",
    (True, 4): "image",
    (False, 2): "tokens",
}


@register_dataset("batches", summary="batches (x, y) of a function of your own", source="the user")
@dataclass(frozen=True)
class Batches(DataSet):
    """Items that ``save_batches`` wrote to ``path``: the first nine tenths for training, the rest for testing.

    Inputs x: float (n, features), (n, steps, features) or (n, channels, height, width), or whole numbers (n, steps),
    which are tokens. Targets y: whole numbers (n,), which are classes, or (n, steps), a class a step, where −100 does
    not count; float (n,) or (n, numbers). Targets (n, 1) are (n,).
    """

    path: str

    @property
    def input_kind(self) -> InputKind:
        inputs = self.load().train.inputs
        return INPUTS[inputs.is_floating_point(), inputs.ndim]

    @property
    def target_kind(self) -> TargetKind:
        return kind_of(self.load().train.targets)

    @property
    def input_shape(self) -> tuple[int, ...]:
        return tuple(self.load().train.inputs.shape[1:])

    @property
    def outputs(self) -> int:
        targets = self._both("targets")
        if self.target_kind == "scalar":
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
        return constant_loss(self.load().train.targets)

    @property
    def chance_accuracy(self) -> float | None:
        if self.target_kind == "scalar":
            return None
        train, test = (targets[targets != IGNORED] for targets in (self.load().train.targets, self.load().test.targets))
        return float((test == train.mode().values).float().mean())

    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. Raises ``BadInput`` where the file is missing."""
        return _load(self.path)

    def _both(self, part: str) -> Tensor:
        return torch.cat([getattr(split, part) for split in self.load()])


@cache
def _load(path: str) -> Data:
    try:
        saved = torch.load(path, weights_only=True)
    except (OSError, EOFError, RuntimeError, UnpicklingError) as error:
        raise BadInput(f"the batches cannot be read: {error}") from error
    test = max(1, len(saved["inputs"]) // TEST_SHARE)
    parts = [Split(saved["inputs"][rows], saved["targets"][rows]) for rows in (slice(None, -test), slice(-test, None))]
    return Data(*parts)


def kind_of(targets: Tensor) -> TargetKind:
    """The kind of ``targets``, from their type and shape."""
    if targets.is_floating_point():
        return "scalar"
    return "class" if targets.ndim == 1 else "token"


def constant_loss(targets: Tensor) -> float:
    """The loss of the best constant prediction of ``targets``: their entropy in nat, or their variance."""
    if targets.is_floating_point():
        return float((targets - targets.mean(0)).square().mean())
    counts = torch.bincount(targets[targets != IGNORED]).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())


def save_batches(batches: Callable[[], Iterable[Any]], name: str, path: Path) -> None:
    """Write the first batches of ``batches()`` to ``path``, at most ``MOST_ITEMS`` items.

    A batch is a pair (x, y), or a dictionary of inputs and targets. Raises ``BadInput`` for a function that raises,
    yields nothing, or yields something else.
    """
    inputs: list[Tensor] = []
    targets: list[Tensor] = []
    items = 0
    try:
        with seeded(0):
            for batch in islice(batches(), MOST_BATCHES):
                x, y = pair_of(batch, name)
                inputs.append(x)
                targets.append(y)
                items += len(x)
                if items >= MOST_ITEMS:
                    break
    except BadInput:
        raise
    except USER_ERRORS as error:  # the user's code
        raise BadInput(f"data {name!r}: reading batches (x, y) raised {type(error).__name__}: {error}") from error
    if not inputs:
        raise BadInput(f"data {name!r} yields no batch")
    try:
        x, y = torch.cat(inputs), torch.cat(targets)
    except RuntimeError as error:
        raise BadInput(f"data {name!r}: batches of several shapes cannot be joined: {error}") from error
    check_items(x, y, name)
    x, y = x[:MOST_ITEMS], y[:MOST_ITEMS]
    x, y = (part.float() if part.is_floating_point() else part.long() for part in (x, y))
    if x.is_floating_point() and x.ndim == 2:
        x = x.view(len(x), 1, 1, -1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")  # an interruption leaves no half of a file under the name that is read
        torch.save({"inputs": x, "targets": y}, part)
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch raises the latter where its archive cannot be written
        raise BadInput(f"the batches cannot be written to {path}: {error}") from error


def pair_of(batch: Any, name: str) -> tuple[Tensor, Tensor]:
    """The inputs and the targets of one batch; raises ``BadInput`` for what is no batch."""
    if isinstance(batch, Mapping):
        known = [key for key in batch if key in TARGETS]
        others = [key for key in batch if key not in TARGETS]
        if not len(known) == len(others) == 1:
            raise BadInput(
                f"data {name!r}: a batch has the keys {', '.join(map(str, batch))}; yield pairs (x, y), or "
                f"dictionaries with two keys, one of them of {', '.join(TARGETS)}"
            )
        batch = batch[others[0]], batch[known[0]]
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        several = isinstance(batch, tuple | list)
        what = f"has {len(batch)} parts" if several else f"is a {type(batch).__name__}"
        raise BadInput(f"data {name!r}: a batch {what}; yield pairs (x, y)")
    x, y = numbers_of(batch[0], f"data {name!r}: x"), numbers_of(batch[1], f"data {name!r}: y")
    return x, y.flatten() if y.ndim == 2 and y.shape[1] == 1 else y


def numbers_of(part: Any, what: str) -> Tensor:
    """``part`` of a batch as a tensor; ``what`` it is appears in messages. Raises ``BadInput`` for what is none."""
    try:
        tensor = torch.as_tensor(part).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        inner = part
        while isinstance(inner, list | tuple) and inner:
            inner = inner[0]
        kind = getattr(inner, "dtype", type(inner).__name__)
        raise BadInput(f"{what} is a {type(part).__name__} of {kind}; yield a tensor or an array of numbers") from None
    if tensor.is_complex():
        raise BadInput(f"{what} is {tensor.dtype}; yield real numbers, such as the parts of complex ones side by side")
    if not tensor.ndim:
        raise BadInput(f"{what} is one number; yield batches of items, as a DataLoader with a batch_size does")
    return tensor


def check_items(x: Tensor, y: Tensor, name: str) -> None:
    """Raise ``BadInput`` for items that no network can be trained on."""
    if (x.is_floating_point(), x.ndim) not in INPUTS:
        kinds = "float (n, features), (n, steps, features) or (n, channels, height, width), or tokens (n, steps)"
        raise BadInput(f"data {name!r}: x is {x.dtype} of {tuple(x.shape)}, but must be {kinds}")
    if len(x) != len(y) or len(x) < 2:
        raise BadInput(f"data {name!r}: {len(x)} inputs and {len(y)} targets; two items or more are needed, of each")
    if not y.is_floating_point():
        if y.ndim not in (1, 2):
            raise BadInput(f"data {name!r}: y is {y.dtype} of {tuple(y.shape)}, but classes are (n,) or (n, steps)")
        counted = y[y != IGNORED]
        if not len(counted) or int(counted.min()) < 0:
            lowest = int(counted.min()) if len(counted) else f"only {IGNORED}"
            raise BadInput(f"data {name!r}: classes are 0 or more ({IGNORED} does not count), not {lowest}")
    if not all(bool(torch.isfinite(part).all()) for part in (x, y)):
        raise BadInput(f"data {name!r} has numbers that are not finite")
    if not x.is_floating_point() and int(x.min()) < 0:
        raise BadInput(f"data {name!r}: tokens must be 0 or more, not {int(x.min())}")
