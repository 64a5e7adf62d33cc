"""Options that several commands share, how their values are read, and commands whose options come from a dataclass."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from highway_bench.errors import BadInput
from highway_bench.options import help_of, scalar_of, takes_names, takes_several
from highway_bench.plan.selection import STORE as STORE

if TYPE_CHECKING:
    from highway_bench.execution.engines import AnyEngine

StorePath = Annotated[Path, typer.Option("--store", help="The SQLite file of the results.")]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE",
        help="Import this module, or this .py file, first: it registers your blocks. May be repeated.",
    ),
]
BlockName = Annotated[str, typer.Argument(help="The block, as in 'highway-bench list blocks'.")]
Layers = Annotated[int, typer.Option(help="Number of layers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BlockOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--block-option", metavar="K=V", help="An option of the block, such as gate_bias=-2. May be repeated."
    ),
]
FamilyOptions = Annotated[
    list[str] | None,
    typer.Option("--family-option", metavar="K=V", help="An option of the family, such as heads=8. May be repeated."),
]
WorkerCount = Annotated[
    int | None, typer.Option(min=1, max=10_000, help="Parallel processes; by default, one per core.")
]
EngineName = Annotated[
    str, typer.Option("--engine", help="Where cells run: local, ray (a cluster), or an engine of a plug-in.")
]
ClusterAddress = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="HOST:PORT", help="The Ray cluster; by default RAY_ADDRESS, or the one on this machine."
    ),
]
MeasureAgain = Annotated[
    str | None,
    typer.Option(
        help="Measure these stored cells again: failed (the default), all, or a pattern such as 'highway*depth 50'."
    ),
]
StrictSource = Annotated[
    bool,
    typer.Option("--strict-source", help="Measure stored cells again whose rows are of another source than today's."),
]
LogPath = Annotated[Path | None, typer.Option("--log-file", help="Append what happens to this file, line by line.")]


def engine_at(name: str, address: str | None, workers: int | None = None) -> AnyEngine:
    """The engine called ``name``; with an ``address``, the one on that cluster."""
    if address is None:
        return name
    if name != "ray":
        raise BadInput("--address is the address of a Ray cluster: it needs --engine ray")
    from highway_bench.execution.engines.ray import RayEngine

    return RayEngine(workers, address=address)


def assignments(option: str, given: Sequence[str] | None) -> dict[str, Any]:
    """``["k=v", …]`` as a mapping. A value is read as JSON if Python can, else as text."""
    values: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{option} {text!r}: write it as name=value")
        try:
            values[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):  # also a number of thousands of digits, or brackets in brackets
            values[name.strip()] = value
    return values


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
