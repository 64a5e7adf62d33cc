"""Options: dataclass fields that declare a command's options. Commands, help and checks are derived from them.

>>> @dataclass(frozen=True, kw_only=True)
... class Size:
...     depth: tuple[int, ...] = several("Layers that the block joins.", minimum=1)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, field, fields
from functools import wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

from highway_bench.errors import BadInput, UnknownName

P = ParamSpec("P")
T = TypeVar("T")

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


def with_near_names(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: an option that ``function`` does not have raises ``UnknownName``, with near names."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def checked(*values: P.args, **options: P.kwargs) -> T:
        for name in options:
            if name not in known:
                raise UnknownName(f"option of {function.__name__}", name, known)
        return function(*values, **options)

    return checked


def check_whole(name: str, value: Any) -> None:
    """Raise ``BadInput`` for a value that is no whole number, such as a list of some."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise BadInput(f"{name} must be a whole number, not {value!r}")


def check_options(given: Any) -> None:
    """Raise ``BadInput`` for a value of the dataclass ``given`` below its minimum or above ``GREATEST``,
    ``UnknownName`` for one that is not among its choices."""
    for option in fields(given):
        value = getattr(given, option.name)
        if takes_names(option) and not isinstance(value, Mapping):
            raise BadInput(f"{option.name} must be a dictionary, not {value!r}")
        if value is not None and not isinstance(value, Mapping):
            for each in value if takes_several(option) else (value,):
                _check(option, each)


def _check(option: Field[Any], value: Any) -> None:
    name, minimum, choices = option.name.replace("_", " "), option.metadata["minimum"], option.metadata["choices"]
    if minimum is not None:
        check_whole(name, value)
    if minimum is not None and value < minimum:
        raise BadInput(f"{name} must be at least {minimum}, not {value}")
    if minimum is not None and value > GREATEST:
        raise BadInput(f"{name} must be at most {GREATEST}")
    if scalar_of(option) is str and option.name not in ("family", "data") and not isinstance(value, str):
        raise BadInput(f"{name} must be a name, not {value!r}")
    if choices and value not in choices:
        raise UnknownName(name, value, choices)
