"""Where data files lie: the user's data folder, named by ``HIGHWAY_BENCH_DATA``, and the package's own cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from highway_bench.errors import BadInput

VARIABLE = "HIGHWAY_BENCH_DATA"


def data_folder() -> Path | None:
    """The folder that ``HIGHWAY_BENCH_DATA`` names, as an absolute path; ``None`` where it is unset or empty.

    Raises ``BadInput`` where it names something that is not a folder. A run without the user's data would measure
    something else.
    """
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"{VARIABLE} names {str(folder)!r}, which is not a folder")
    return folder


def cache_folder() -> Path:
    """The folder for what the package itself downloads; it may not exist yet.

    ``$XDG_CACHE_HOME/highway_bench``, or ``~/.cache/highway_bench`` where that variable is unset or relative (XDG base
    directory specification).
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "highway_bench"


def find_folder(name: str, files: Iterable[str]) -> Path | None:
    """The first folder that holds any of ``files``, or ``None``.

    The order is: ``name`` in the data folder, the data folder itself, ``name`` in the cache. One file is enough: the
    caller then reports which files of the folder are missing.
    """
    files = list(files)
    given = data_folder()
    folders = ([given / name, given] if given else []) + [cache_folder() / name]
    return next((folder for folder in folders if any((folder / file).is_file() for file in files)), None)
