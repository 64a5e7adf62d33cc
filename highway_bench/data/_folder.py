"""Where data files lie: the user's data folder, named by ``HIGHWAY_BENCH_DATA``, and the package's own cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from highway_bench.errors import BadInput

VARIABLE = "HIGHWAY_BENCH_DATA"


def data_folder() -> Path | None:
    """The folder that ``HIGHWAY_BENCH_DATA`` names, as an absolute path; ``None`` where it is unset or empty.

    Raises ``BadInput`` where it names something that is not a folder: to go on without the data that someone pointed
    at would measure something else than was asked for.
    """
    value = os.environ.get(VARIABLE, "")
    if not value:
        return None
    folder = Path(value).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"{VARIABLE} names {str(folder)!r}, which is not a folder")
    return folder


def cache_folder() -> Path:
    """The folder for what the package itself fetches; it may not exist yet.

    ``$XDG_CACHE_HOME/highway_bench``, or ``~/.cache/highway_bench`` where that is unset or relative, as the XDG base
    directory specification has it.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "highway_bench"


def find_folder(name: str, files: Iterable[str]) -> Path | None:
    """The first folder that holds any of ``files``, or ``None``.

    Looked through in this order: ``name`` in the data folder, the data folder itself, ``name`` in the cache. One file
    is enough, so that a folder with some of them missing is reported rather than passed over.
    """
    files = list(files)
    given = data_folder()
    places = ([given / name, given] if given else []) + [cache_folder() / name]
    return next((place for place in places if any((place / file).is_file() for file in files)), None)
