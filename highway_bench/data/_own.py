"""Data of the user's own: what is read from arrays, batches, data sets or a function that returns one of these.

All items are permuted by a fixed seed, and the last tenth is held out. Of more than ``MOST_ITEMS`` items, arrays and
map-style data sets give a random part, a stream of batches its first ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset

from highway_bench.cell import TARGETS
from highway_bench.data.base import IGNORED, Data, Split, TargetKind
from highway_bench.data.batches import INPUTS, Batches, save
from highway_bench.errors import USER_ERRORS, BadInput

MOST_ITEMS = 20_000
TEST_SHARE = 10  # the last tenth of the permuted items is held out
BATCH = 100  # items that are read at a time from a data set without batches
SEED = 0  # of the permutation

TARGET_KEYS = ("y", "target", "targets", "label", "labels")  # in batches that are dictionaries
KINDS: dict[str, TargetKind] = dict(zip(TARGETS, ("class", "scalar", "label", "token"), strict=True))
"""By what ``target`` may name: its kind."""

CHANNELS = (1, 3, 4)  # of images


class Read(NamedTuple):
    """What was read: the name and options of its data set, and what was taken in one line."""

    options: Mapping[str, Any]
    note: str


def read_own(given: Any, name: str, *, target: str | None = None, images: bool = False) -> Read:
    """Read the data ``given``, called ``name`` in messages, and save a copy for the workers.

    ``given`` is a pair (x, y) of arrays or tensors, a pair ((x, y), (x, y)) for training and testing, a ``Dataset``, a
    ``DataLoader``, an iterable of batches (pairs, or dictionaries), or a function that returns one of these. ``target``
    says what y is: ``classes``, ``numbers``, ``labels`` or ``tokens``; by default, its type and shape do. With
    ``images``, x of (n, height, width) gets an axis for one channel. Raises ``BadInput``, in one line, for all else.
    """
    if target is not None and target not in KINDS:
        raise BadInput(f"data {name!r}: a target is {', '.join(KINDS)}, not {target!r}")
    try:
        parts = _parts(given() if callable(given) and not _is_readable(given) else given, name)
    except BadInput:
        raise
    except USER_ERRORS as error:  # the user's code
        raise BadInput(f"data {name!r}: reading it raised {type(error).__name__}: {error}") from error
    splits = [_items(x, y, name, target, images) for x, y in parts]
    kinds = {kind for _, kind in splits}
    if len({(split.inputs.dtype, split.inputs.shape[1:], split.targets.shape[1:]) for split, _ in splits}) > 1:
        raise BadInput(f"data {name!r}: the items for training and for testing have several shapes or types")
    if len(kinds) > 1:
        raise BadInput(f"data {name!r}: y differs between training and testing; name its kind with target")
    (kind,) = kinds
    data = Data(*(split for split, _ in splits)) if len(splits) == 2 else _halved(splits[0][0])
    dataset = Batches(save(data, kind))
    return Read({"items": dataset.items}, _described(data, dataset))


def _parts(given: Any, name: str) -> list[tuple[Tensor, Tensor]]:
    """The arrays of all items, or those for training and for testing, each in an order by ``SEED``."""
    if isinstance(given, tuple) and len(given) == 2 and all(map(_is_whole, given)):
        return [one for part in given for one in _parts(part, name)]
    if _is_pair_of_arrays(given):
        x, y = pair_of(given, name)
        _check_lengths(x, y, name)
        rows = _some(len(x))
        return [(x[rows], y[rows])]
    if isinstance(given, Mapping | str | bytes) or _is_array(given) or not _is_readable(given):
        raise BadInput(
            f"data {name!r} is a {type(given).__name__}: give arrays (x, y), a Dataset, a DataLoader, or batches (x, y)"
        )
    if isinstance(given, IterableDataset):
        return [_stream(DataLoader(given, batch_size=BATCH), name)]
    if _is_map_style(given):
        chosen = Subset(given, _some(len(given)).tolist())
        x, y = _joined((pair_of(batch, name) for batch in DataLoader(chosen, batch_size=BATCH)), name)
        return [(x, y)]
    if isinstance(given, tuple) and all(map(_is_array, given)):
        pair_of(given, name)  # raises, for a third part
    return [_stream(given, name)]


def _is_array(part: Any) -> bool:
    return hasattr(part, "__array__")


def _is_readable(given: Any) -> bool:
    return isinstance(given, Iterable) or _is_map_style(given)


def _is_whole(part: Any) -> bool:
    """Whether ``part`` of a pair has inputs and targets of its own."""
    return isinstance(part, DataLoader) or _is_pair_of_arrays(part) or (_is_map_style(part) and not _is_array(part))


def _is_pair_of_arrays(given: Any) -> bool:
    """Whether ``given`` is an array and another one, or a list of numbers or names."""
    if not isinstance(given, tuple | list) or len(given) != 2 or not _is_array(given[0]):
        return False
    listed = isinstance(given[1], list) and bool(given[1]) and isinstance(given[1][0], int | float | str)
    return listed or _is_array(given[1])


def _is_map_style(given: Any) -> bool:
    """Whether ``given`` has a length and items by number, as a ``Dataset`` has."""
    return hasattr(given, "__getitem__") and hasattr(given, "__len__") and not isinstance(given, tuple | list)


def _some(count: int) -> Tensor:
    """Row numbers in random order, ``MOST_ITEMS`` at most."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(SEED))[:MOST_ITEMS]


def _stream(batches: Iterable[Any], name: str) -> tuple[Tensor, Tensor]:
    """The first items of a stream, in random order. Raises ``BadInput`` where it goes on and these are in order of
    class: they would have a part of the classes alone."""
    pairs = (pair_of(batch, name) for batch in batches)
    x, y = _joined(_first(pairs), name)
    goes_on = len(x) > MOST_ITEMS or next(pairs, None) is not None
    x, y = x[:MOST_ITEMS], y[:MOST_ITEMS]
    if goes_on and y.ndim == 1 and not y.is_floating_point():
        runs = int((y[1:] != y[:-1]).sum()) + 1
        if runs == len(y.unique()):
            raise BadInput(f"data {name!r}: its first {MOST_ITEMS:,} items come in order of class: shuffle it")
    rows = _some(len(x))
    return x[rows], y[rows]


def _first(pairs: Iterator[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs until there are ``MOST_ITEMS`` items."""
    items = 0
    while items < MOST_ITEMS and (pair := next(pairs, None)) is not None:
        items += len(pair[0])
        yield pair


def _joined(pairs: Iterable[tuple[Tensor, Tensor]], name: str) -> tuple[Tensor, Tensor]:
    parts = list(pairs)
    if not parts:
        raise BadInput(f"data {name!r} yields no batch")
    try:
        x, y = (torch.cat(several) for several in zip(*parts, strict=True))
    except RuntimeError as error:
        raise BadInput(f"data {name!r}: batches of several shapes cannot be joined: {error}") from error
    _check_lengths(x, y, name)
    return x, y


def _check_lengths(x: Tensor, y: Tensor, name: str) -> None:
    if len(x) != len(y) or len(x) < 2:
        raise BadInput(f"data {name!r}: {len(x)} inputs and {len(y)} targets; two items or more are needed, of each")


def _halved(split: Split) -> Data:
    """``split`` without its last tenth, and that."""
    test = max(1, len(split.inputs) // TEST_SHARE)
    return Data(Split(*(part[:-test] for part in split)), Split(*(part[-test:] for part in split)))


def pair_of(batch: Any, name: str) -> tuple[Tensor, Tensor]:
    """The inputs and the targets of one batch; raises ``BadInput`` for what is no batch."""
    if isinstance(batch, Mapping):
        known = [key for key in batch if key in TARGET_KEYS]
        others = [key for key in batch if key not in TARGET_KEYS]
        if not len(known) == len(others) == 1:
            raise BadInput(
                f"data {name!r}: a batch has the keys {', '.join(map(str, batch))}; yield pairs (x, y), or "
                f"dictionaries with two keys, one of them of {', '.join(TARGET_KEYS)}"
            )
        batch = batch[others[0]], batch[known[0]]
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        several = isinstance(batch, tuple | list)
        what = f"has {len(batch)} parts" if several else f"is a {type(batch).__name__}"
        raise BadInput(f"data {name!r}: a batch {what}; yield pairs (x, y)")
    x, y = numbers_of(batch[0], f"data {name!r}: x"), numbers_of(batch[1], f"data {name!r}: y")
    return x, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def numbers_of(part: Any, what: str) -> Tensor:
    """``part`` of a batch as a tensor; ``what`` it is appears in messages. Raises ``BadInput`` for what is none."""
    try:
        tensor = torch.as_tensor(np.asarray(part) if _is_array(part) else part).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        inner = part
        while isinstance(inner, list | tuple) and inner:
            inner = inner[0]
        kind = getattr(inner, "dtype", type(inner).__name__)
        raise BadInput(
            f"{what} is a {type(part).__name__} of {kind}; give numbers (names of classes as 0, 1, …)"
        ) from None
    if tensor.is_complex():
        raise BadInput(f"{what} is {tensor.dtype}; give real numbers, such as the parts of complex ones side by side")
    if not tensor.ndim:
        raise BadInput(f"{what} is one number; yield batches of items, as a DataLoader with a batch_size does")
    return tensor


def _items(x: Tensor, y: Tensor, name: str, target: str | None, images: bool) -> tuple[Split, TargetKind]:
    """The items as networks train on them, and the kind of their targets."""
    inputs = _inputs(x, name, images)
    steps = inputs.shape[1] if inputs.ndim < 4 else None
    kind = KINDS[target] if target else _kind_of(y, steps, name)
    return Split(inputs, _targets(y, kind, steps, name)), kind


def _inputs(x: Tensor, name: str, images: bool) -> Tensor:
    if x.dtype == torch.bool:
        x = x.float()
    if x.ndim == 4 and x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS:
        raise BadInput(f"data {name!r}: x of {tuple(x.shape)} has its channels last: give x.permute(0, 3, 1, 2)")
    pixels = x.dtype == torch.uint8 and x.ndim in (3, 4)
    if pixels:
        x = x.float() / 255
    x = x.float() if x.is_floating_point() else x.long()
    if x.is_floating_point() and x.ndim == 2:  # an image of one row
        x = x.view(len(x), 1, 1, -1)
    if x.is_floating_point() and x.ndim == 3 and (images or pixels):
        x = x.unsqueeze(1)
    if (x.is_floating_point(), x.ndim) not in INPUTS:
        cure = "; give whole numbers as float, or pixels as uint8" if not x.is_floating_point() else ""
        kinds = "float (n, features), (n, steps, features) or (n, channels, height, width), or tokens (n, steps)"
        raise BadInput(f"data {name!r}: x is {x.dtype} of {tuple(x.shape)}, but must be {kinds}{cure}")
    if not bool(torch.isfinite(x).all()):
        raise BadInput(f"data {name!r}: x has numbers that are not finite")
    if not x.is_floating_point() and int(x.min()) < 0:
        raise BadInput(f"data {name!r}: tokens must be 0 or more, not {int(x.min())}; give numbers as float")
    return x


def _kind_of(y: Tensor, steps: int | None, name: str) -> TargetKind:
    """The kind of ``y`` by its type, shape and values."""
    binary = bool(((y == 0) | (y == 1)).all())
    if y.ndim == 1:
        return "scalar" if y.is_floating_point() and not binary else "class"
    if y.ndim == 2 and y.shape[1] == steps and not y.is_floating_point():
        return "token"
    if y.ndim == 2 and binary:
        return "label"
    if y.ndim == 2 and y.is_floating_point():
        return "scalar"
    raise BadInput(
        f"data {name!r}: y is {y.dtype} of {tuple(y.shape)}, but classes are (n,), tokens (n, steps) with the steps of "
        f"x, labels (n, k) of 0 and 1, and numbers (n, k) of floats; or name its kind with target"
    )


def _targets(y: Tensor, kind: TargetKind, steps: int | None, name: str) -> Tensor:
    if not bool(torch.isfinite(y).all()):
        raise BadInput(f"data {name!r}: y has numbers that are not finite")
    if kind in ("scalar", "label"):
        if kind == "label" and (y.ndim != 2 or not bool(((y == 0) | (y == 1)).all())):
            raise BadInput(f"data {name!r}: labels are (n, k) of 0 and 1, not {tuple(y.shape)} of {y.unique()[:3]}")
        return y.float()
    if kind == "class" and y.ndim == 2:  # one of k columns is 1
        y = y.argmax(1)
    whole = y.long()
    if not bool((whole == y).all()) or y.ndim != (2 if kind == "token" else 1):
        raise BadInput(f"data {name!r}: y is {y.dtype} of {tuple(y.shape)}, and cannot be of the kind {kind}")
    if kind == "token" and y.shape[1] != steps:
        raise BadInput(f"data {name!r}: y has {y.shape[1]} steps and x {steps}; tokens are one a step of x")
    counted = whole[whole != IGNORED]
    if not len(counted) or int(counted.min()) < 0:
        lowest = int(counted.min()) if len(counted) else f"only {IGNORED}"
        raise BadInput(f"data {name!r}: classes are 0 or more ({IGNORED} does not count), not {lowest}")
    return whole


def _described(data: Data, dataset: Batches) -> str:
    """What was taken, in one line."""
    count, held_out = (len(split.inputs) for split in data)
    shape = [size for size in dataset.input_shape if dataset.input_kind != "image" or size > 1]
    sizes = " × ".join(map(str, dataset.input_shape if len(shape) > 1 else shape))
    vectors = dataset.input_kind == "image" and dataset.input_shape[:2] == (1, 1)
    what = {"image": "vectors" if vectors else "images", "series": "series", "tokens": "rows of tokens"}
    targets = {"class": "classes", "token": "classes a step", "label": "labels", "scalar": "numbers"}
    parts = [f"{count + held_out:,} {what[dataset.input_kind]} {sizes}"]
    if dataset.input_kind == "series" and shape[0] == shape[1]:
        parts[0] += " (give images an axis for the channel)"
    parts += [f"{dataset.outputs:,} {targets[dataset.target_kind]}", f"{held_out:,} held out"]
    return ", ".join(parts)
