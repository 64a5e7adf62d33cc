"""Commands whose options come from a dataclass: its fields give types, number of values and help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from functools import wraps
from typing import Annotated, Any

import typer

from highway_bench.cli._options import assignments
from highway_bench.options import help_of, scalar_of, takes_names, takes_several


def with_options_of(options: type, argument: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator of a command whose parameter ``options`` is a mapping of a dataclass's fields to the given values.

    On the command line each field is an option; the field ``argument`` is a positional argument.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = {one.name: one for one in fields(options)}
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            if parameter.name == "options":
                parameters += [_parameter(one, one.name == argument) for one in given.values()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @wraps(command)
        def derived(**values: Any) -> None:
            chosen = {name: _value(one, values.pop(_name(one))) for name, one in given.items()}
            command(options=chosen, **values)

        derived.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        derived.__annotations__ = {one.name: one.annotation for one in parameters}
        return derived

    return decorate


def _name(option: Field[Any]) -> str:
    """The option's name on the command line: singular where each use gives one named value."""
    return option.name.removesuffix("s") if takes_names(option) else option.name


def _parameter(option: Field[Any], is_argument: bool) -> inspect.Parameter:
    kind: Any
    if takes_names(option):
        kind = Annotated[list[str] | None, typer.Option(metavar="K=V", help=help_of(option))]
    else:
        scalar = scalar_of(option)
        value = list[scalar] | None if takes_several(option) else scalar | None  # type: ignore[valid-type]
        kind = Annotated[value, (typer.Argument if is_argument else typer.Option)(help=help_of(option))]
    return inspect.Parameter(_name(option), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)


def _value(option: Field[Any], given: Any) -> Any:
    if takes_names(option):
        return assignments(f"--{_name(option).replace('_', '-')}", given)
    return given
