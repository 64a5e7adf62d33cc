"""Where data files lie: the user's data folder, named by ``HIGHWAY_BENCH_DATA``, and the package's own cache."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from highway_bench.errors import BadInput

VARIABLE = "HIGHWAY_BENCH_DATA"
MOST_NAMED = 8  # entries of a folder in a message


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


def searched_folders(name: str) -> list[Path]:
    """Where the files of the data set ``name`` are looked for: its folder in the data folder, the data folder itself,
    its folder in the cache."""
    given = data_folder()
    return [*([given / name, given] if given else []), cache_folder() / name]


def find_folder(name: str, files: Iterable[str]) -> Path | None:
    """The first of the searched folders that holds any of ``files``, or ``None``.

    One file is enough: the caller then reports which files of the folder are missing.
    """
    files = list(files)
    return next((folder for folder in searched_folders(name) if any((folder / file).is_file() for file in files)), None)


def how_to_give(name: str, files: str) -> str:
    """How to give the ``files`` of the data set ``name``, which folders were searched for them, and what is there."""
    there = "; ".join(f"{folder} {held_by(folder)}" for folder in searched_folders(name))
    given = data_folder()
    cure = f"put {files} in {given / name}" if given else f"set {VARIABLE} to a folder with {files}"
    return f"{cure}; searched: {there}"


def held_by(folder: Path) -> str:
    """What ``folder`` holds, in words that follow its name: at most ``MOST_NAMED`` names."""
    if not folder.is_dir():
        return "is not there"
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"has {', '.join(names[:MOST_NAMED]) or 'nothing'}{more}"
