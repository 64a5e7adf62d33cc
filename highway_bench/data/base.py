"""DataSet: inputs and targets in memory, the scores of the best constant predictor, and what data sets share."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
import scipy  # a part of it is imported at its first use
from numpy.typing import NDArray
from torch import Tensor

from highway_bench.data._files import cache_folder
from highway_bench.errors import BadInput
from highway_bench.registry import FIRST_VERSION, Registry

PADDING = 0  # the token after the end of a text
IGNORED = -100  # a target that does not count: torch's ignore_index
InputKind = Literal["image", "tokens", "series"]
TargetKind = Literal["class", "scalar", "token", "label"]


class Split(NamedTuple):
    """Inputs and targets, row by row.

    Inputs: ``image`` float (n, channels, height, width) in [0, 1]; ``tokens`` int64 (n, steps), maybe with ``PADDING``;
    ``series`` float (n, steps, features). Targets: ``class`` int64 (n,); ``scalar`` float (n,) or (n, numbers);
    ``token`` int64 (n, steps) with ``IGNORED`` (−100) at steps that do not count; ``label`` float (n, labels), each 0
    or 1.
    """

    inputs: Tensor
    targets: Tensor


class Data(NamedTuple):
    """A data set's training and test parts."""

    train: Split
    test: Split


@dataclass(frozen=True)
class DataSet(ABC):
    """A data set's shapes and kinds, which a network needs, and how to load it. Fields are options; see each subclass.

    A *constant predictor* predicts the same for every item. Where targets are sequences, its prediction may differ
    between steps, but not between items.
    """

    padded: ClassVar[bool] = False
    """Whether rows of ``tokens`` may end in ``PADDING``, token 0. A network's output must not depend on the padding."""

    causal: ClassVar[bool] = False
    """Whether a step's target is a later input, so that no output may depend on later steps."""

    byte_targets: ClassVar[bool] = False
    """Whether ``token`` targets are the bytes of a text, so that their loss is in bits per byte too."""

    pins: ClassVar[Mapping[str, Callable[[], object]]] = {}
    """Options that say which data a cell has, where these depend on the machine; each with what gives its value here.
    The recipe of every cell has them (``tasks.from_cell.pinned``)."""

    @property
    @abstractmethod
    def input_kind(self) -> InputKind: ...

    @property
    @abstractmethod
    def target_kind(self) -> TargetKind: ...

    @property
    @abstractmethod
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one item's input, without the batch."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Numbers that a head gives per prediction: classes, labels, size of the target vocabulary, or numbers."""

    @property
    def vocabulary(self) -> int | None:
        """Size of the input vocabulary, padding included, for ``tokens``; else ``None``."""
        return None

    @property
    @abstractmethod
    def chance_loss(self) -> float:
        """Training loss of the best constant predictor: nat per class, label or target token, squared error for a
        scalar."""

    @property
    def chance_accuracy(self) -> float | None:
        """Test accuracy of always predicting the commonest class; ``None`` for a scalar."""
        return None

    @property
    def reference_loss(self) -> float | None:
        """The loss at which a run succeeds, in nat, from a reference predictor; ``None`` where success is a share of
        ``chance_loss``."""
        return None

    @property
    def is_users(self) -> bool:
        """Whether the user gives the items. A key then has a hash of them, and neither name nor options."""
        return False

    def missing(self) -> str | None:
        """What must be downloaded or installed before ``load`` works, in one line; ``None`` if nothing is missing."""
        return None

    def fetch(self) -> Path:
        """Download what is ``missing`` and return the folder that holds it. By default, ``load`` downloads."""
        self.load()
        return cache_folder()

    @abstractmethod
    def load(self, *, seed: int = 0) -> Data:
        """The data in memory. ``seed`` matters only where data are generated or split at random.

        Data are cached in the process and every call returns the same tensors: do not change them in place.
        """


@dataclass(frozen=True)
class DataSetSpec:
    """A registered data set: its name, a one-line summary, its source, and its class."""

    name: str
    summary: str
    source: str
    cls: type[DataSet]
    version: str = FIRST_VERSION

    @property
    def options(self) -> Mapping[str, object]:
        """Options and their defaults; ``dataclasses.MISSING`` marks one that must be given."""
        return {item.name: item.default for item in fields(self.cls)}


datasets: Registry[DataSetSpec] = Registry("data set", package="highway_bench.data", group="highway_bench.datasets")


Cls = TypeVar("Cls", bound=type[DataSet])


def register_dataset(name: str, *, summary: str, source: str, version: str = FIRST_VERSION) -> Callable[[Cls], Cls]:
    """Class decorator: register a frozen dataclass as the data set ``name``. Its fields are the options.

    ``version`` is raised when its items change.
    """

    def register(cls: Cls) -> Cls:
        datasets.register(name, DataSetSpec(name, summary, source, cls, version), module=cls.__module__)
        return cls

    return register


def make_dataset(name: str, **options: Any) -> DataSet:
    """The data set ``name`` with ``options``; nothing is read yet.

    Raises ``UnknownName`` for a name that is not registered, and ``BadInput`` for an unknown or a missing option or an
    impossible value.
    """
    spec = datasets.get(name)
    unknown = sorted(options.keys() - spec.options.keys())
    if unknown:
        known = ", ".join(spec.options) or "none"
        raise BadInput(f"data set {name!r} has no option {', '.join(map(repr, unknown))}; known: {known}")
    missing = [option for option, default in spec.options.items() if default is MISSING and option not in options]
    if missing:
        raise BadInput(f"data set {name!r} needs the option {', '.join(map(repr, missing))}")
    return spec.cls(**options)


def check_count(option: str, value: object, *, least: int) -> None:
    """Raise ``BadInput`` unless ``value`` is a whole number, ``least`` or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadInput(f"{option} must be a whole number, {least} or more, not {value!r}")


def stratified_rows(
    labels: NDArray[np.int64], *, test: float | int, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of a training and a test part in which every class has the share that it has in ``labels``.

    ``test`` is a share (float) or a count (int). The rows come shuffled, always the same for the same ``seed``.
    """
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(labels))
    train, held_out = train_test_split(rows, test_size=test, stratify=labels, random_state=seed)
    return train, held_out


def label_entropy(counts: Sequence[int] | NDArray[np.int64]) -> float:
    """Cross entropy in nat of predicting the label shares: the least that a constant predictor can have."""
    return float(scipy.stats.entropy(counts))


def commonest_share(train: Sequence[int] | NDArray[np.int64], test: Sequence[int] | NDArray[np.int64]) -> float:
    """Share of the test labels that the commonest training label gets right, from the counts by class."""
    return float(test[int(np.argmax(train))] / np.sum(test))


def generators(seed: int) -> tuple[np.random.Generator, np.random.Generator]:
    """Independent generators for the training and the test part, so that the size of one part does not change the
    other."""
    check_count("seed", seed, least=0)
    train, test = np.random.SeedSequence(seed).spawn(2)
    return np.random.default_rng(train), np.random.default_rng(test)


def fingerprint(dataset: DataSet) -> str:
    """16 hexadecimal digits for the training and the test part of ``dataset``, and for all that it says of them."""
    said = [
        dataset.input_kind,
        dataset.target_kind,
        dataset.outputs,
        dataset.vocabulary,
        dataset.chance_loss,
        dataset.chance_accuracy,
        dataset.reference_loss,
        dataset.padded,
        dataset.causal,
        dataset.byte_targets,
    ]
    return hash_of_items(dataset.load(seed=0), repr(said))


def hash_of_items(data: Data, said: str) -> str:
    """16 hexadecimal digits for ``data``, and for what is ``said`` of them."""
    total = hashlib.sha256(said.encode())
    for part in (part for split in data for part in split):
        total.update(f"{part.dtype} {tuple(part.shape)}".encode())
        total.update(part.contiguous().numpy().tobytes())
    return total.hexdigest()[:16]
