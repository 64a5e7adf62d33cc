"""Edited: users' modules whose file is no longer what this process imported.

Worker processes import the file as it is now, while ``build`` in this process has the layer as it was.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from highway_bench.errors import BadInput
from highway_bench.source import find_module, is_ours

_seen: dict[str, tuple[object, str]] = {}  # by module: its spec, which a reload replaces, and a hash of its code


def check_unedited(modules: Iterable[str]) -> None:
    """Raise ``BadInput`` for one of the user's ``modules`` that was edited after this process imported it.

    At the first look the code of its functions is compared with the file, then the whole file with that look.
    """
    for name in modules:
        module, file = sys.modules.get(name), find_module(name)
        if module is None or file is None or is_ours(name) or type(module.__loader__) is not SourceFileLoader:
            continue
        spec, meaning = _seen.get(name, (None, ""))
        is_same = meaning == file.meaning if module.__spec__ is spec else _runs(module, file.path.read_bytes())
        if not is_same:
            raise BadInput(
                f"module {name!r} was edited after it was imported: reload it (importlib.reload, or %autoreload 2 in a "
                f"notebook)"
            )
        _seen[name] = module.__spec__, file.meaning


def _runs(module: ModuleType, source: bytes) -> bool:
    """Whether the functions of ``module`` and the methods of its classes are those of ``source``."""
    path = str(module.__file__)
    whole = SourceFileLoader(module.__name__, path).source_to_code(source, path)
    written = {(code.co_qualname, *_shape(code)) for code in _codes(whole)}
    owners = [module, *(one for one in vars(module).values() if inspect.isclass(one))]
    functions = (inspect.unwrap(one) for owner in owners for one in vars(owner).values() if inspect.isfunction(one))
    codes = (one.__code__ for one in functions if inspect.isfunction(one) and one.__code__.co_filename == path)
    return all((code.co_qualname, *_shape(code)) in written for code in codes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """``code`` and all that is defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _shape(code: CodeType) -> tuple[Any, ...]:
    """What ``code`` does, on whatever lines of its file."""
    constants = ((type(one), _shape(one) if isinstance(one, CodeType) else one) for one in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)
