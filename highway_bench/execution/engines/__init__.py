"""Engines: where jobs run, such as processes of this machine or of a cluster. One engine per file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

from highway_bench.errors import BadInput
from highway_bench.execution.job import Began, Ended, Job
from highway_bench.registry import Registry


class Engine(Protocol):
    """Where jobs run. A context manager; leaving it stops every worker."""

    @property
    def workers(self) -> int:
        """Jobs that run in parallel, apart from those that must run alone."""
        ...

    def run(self, jobs: Iterable[Job]) -> Iterator[Began | Ended]:
        """Run ``jobs``. Every cell of every job ends exactly once, whatever happens to its worker."""
        ...

    def drain(self) -> Iterator[Ended]:
        """After an interrupt: stop the workers, and yield the cells that ended but were not yielded yet."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


AnyEngine: TypeAlias = str | Engine
EngineFactory: TypeAlias = Callable[[int | None], Engine]

engines: Registry[EngineFactory] = Registry(
    "engine", package="highway_bench.execution.engines", group="highway_bench.engines"
)

F = TypeVar("F", bound=EngineFactory)


def register_engine(name: str) -> Callable[[F], F]:
    """Decorator: register a class or function that creates an engine for a number of workers. ``None`` leaves the
    number to the engine."""

    def register(factory: F) -> F:
        engines.register(name, factory, module=factory.__module__)
        return factory

    return register


def make_engine(engine: AnyEngine, workers: int | None) -> Engine:
    """``engine`` itself, or the engine of that name with ``workers``. Raises ``UnknownName`` for an unknown name,
    and ``BadInput`` for less than one worker."""
    if workers is not None and workers < 1:
        raise BadInput(f"workers must be at least 1, not {workers}")
    return engines.get(engine)(workers) if isinstance(engine, str) else engine
