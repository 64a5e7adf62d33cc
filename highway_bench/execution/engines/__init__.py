"""Engines: where cells run. One engine per file; ``engines`` is the registry."""

from highway_bench.execution.engines.base import AnyEngine, Engine, engines, make_engine, register_engine

__all__ = ["AnyEngine", "Engine", "engines", "make_engine", "register_engine"]
