"""Options: dataclass fields that declare a command's options. Commands, help and checks are derived from them.

>>> @dataclass(frozen=True, kw_only=True)
... class Size:
...     depth: tuple[int, ...] = several("Layers that the block joins.", minimum=1)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from typing import Any

from highway_bench.errors import BadInput, UnknownName

GREATEST = 2**31 - 1  # of a number with a minimum: seeds, sizes and the columns of a store have room for it


def several(about: str, *, minimum: int | None = None, choices: Sequence[str] = ()) -> Any:
    """An option with several values: its help, its least value, and its possible names."""
    return field(default=(), metadata={"about": about, "minimum": minimum, "choices": tuple(choices)})


def single(about: str, *, minimum: int | None = None, choices: Sequence[str] = (), default: Any = None) -> Any:
    """An option with one value, or none."""
    return field(default=default, metadata={"about": about, "minimum": minimum, "choices": tuple(choices)})


def by_name(about: str) -> Any:
    """An option with named values: ``NAME=VALUE`` on the command line."""
    return field(default_factory=dict, metadata={"about": about, "minimum": None, "choices": ()})


def takes_several(option: Field[Any]) -> bool:
    """Whether an option has several values."""
    return option.default == ()


def takes_names(option: Field[Any]) -> bool:
    """Whether an option has named values."""
    return option.default_factory is dict


def scalar_of(option: Field[Any]) -> type[int] | type[str]:
    """The type of one value: ``int`` if the field's annotation contains it, else ``str``."""
    return int if "int" in str(option.type) else str


def help_of(option: Field[Any]) -> str:
    """An option's help, with its possible names."""
    about, choices = option.metadata["about"], option.metadata["choices"]
    return f"{about}: {', '.join(choices)}." if choices else str(about)


def check_options(given: Any) -> None:
    """Raise ``BadInput`` for a value of the dataclass ``given`` below its minimum or above ``GREATEST``,
    ``UnknownName`` for one that is not among its choices."""
    for option in fields(given):
        value = getattr(given, option.name)
        if value is not None and not isinstance(value, Mapping):
            for each in value if takes_several(option) else (value,):
                _check(option, each)


def _check(option: Field[Any], value: Any) -> None:
    name, minimum, choices = option.name.replace("_", " "), option.metadata["minimum"], option.metadata["choices"]
    if minimum is not None and value < minimum:
        raise BadInput(f"{name} must be at least {minimum}, not {value}")
    if minimum is not None and value > GREATEST:
        raise BadInput(f"{name} must be at most {GREATEST}")
    if choices and value not in choices:
        raise UnknownName(name, value, choices)
