"""Cell: one measurement to make, as plain data. Workers receive it, the store's keys and a row's columns come from
it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

Phase = Literal["forward", "forward-backward", "train-step"]
Mode = Literal["eager", "compile", "cudagraph"]
Match = Literal["width", "params", "flops"]
StartName = Literal["published", "depth-aware"]
PHASES: tuple[Phase, ...] = get_args(Phase)
MODES: tuple[Mode, ...] = get_args(Mode)
MATCHES: tuple[Match, ...] = get_args(Match)
STARTS: tuple[StartName, ...] = get_args(StartName)
DEPTH_AWARE: StartName = "depth-aware"
TARGETS = ("classes", "numbers", "labels", "tokens")  # what the targets of a user's data may be
DTYPES = ("float32", "tf32", "bfloat16", "float16", "float64")  # tf32: float32 with TF32 products, on a GPU


def canonical(options: Mapping[str, Any]) -> str:
    """``options`` as JSON with sorted keys: equal options give equal text."""
    return _CANONICAL.encode(dict(options)) if options else "{}"


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """The coordinates of one measurement. Two cells are equal if their canonical JSON is.

    ``nominal_width`` is plain's width, ``width`` the one this block gets under ``match``. ``depth`` counts the layers
    with the block (the papers count the stem too: their 10 layers are depth 9). Fields that a task does not use are
    ``None``. ``start`` names one of the block's starts; without it, options decide. ``recipe`` has the training
    settings. ``trial`` numbers the trials of a search, and is ``None`` for cells outside a search.
    """

    task: str
    block: str
    family: str
    depth: int
    width: int
    nominal_width: int
    match: Match = "params"
    block_options: Mapping[str, Any] = field(default_factory=dict)
    family_options: Mapping[str, Any] = field(default_factory=dict)
    start: StartName | None = None
    batch_size: int = 1
    seq_len: int | None = None
    phase: Phase | None = None
    dtype: str = "float32"
    device: str = "cpu"
    mode: Mode = "eager"
    dataset: str | None = None
    recipe: Mapping[str, Any] = field(default_factory=dict)
    trial: int | None = None
    seed: int = 0
    threads: int = 1

    def columns(self) -> dict[str, Any]:
        """The cell as row columns: options and recipe as canonical JSON, everything else as it is."""
        values = {name: getattr(self, name) for name in _FIELDS}
        return values | {name: canonical(values[name]) for name in _MAPPINGS}

    @classmethod
    def of_columns(cls, columns: Mapping[str, Any]) -> Cell:
        """The cell of a row: the inverse of ``columns``."""
        values = {name: columns[name] for name in _FIELDS}
        return cls(**values | {name: json.loads(values[name]) for name in _MAPPINGS})

    @cached_property
    def identity(self) -> str:
        """Canonical JSON of the whole cell."""
        return canonical(self.columns())

    def but(self, **changes: Any) -> Cell:
        """This cell with some fields changed."""
        return replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __str__(self) -> str:
        parts = [
            self.task,
            self.block,
            *_assignments(self.block_options),
            self.family,
            *_assignments(self.family_options),
            *([f"start {self.start}"] if self.start else []),
        ]
        parts += [f"depth {self.depth}", f"width {self.width}"]
        parts += [str(part) for part in (self.phase, self.dataset) if part]
        parts += [f"length {self.seq_len}"] if self.seq_len else []
        parts += [self.mode] if self.mode != "eager" else []
        parts += [f"trial {self.trial}"] if self.trial is not None else []
        parts += [f"gain {self.recipe['gain']}"] if self.recipe.get("gain", 1) != 1 else []
        parts += [f"seed {self.seed}"] if self.recipe else []
        return " ".join(parts)


_FIELDS = tuple(one.name for one in fields(Cell))
_MAPPINGS = tuple(one.name for one in fields(Cell) if one.default_factory is dict)


def _assignments(options: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value}" for name, value in options.items()]
